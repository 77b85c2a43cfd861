// SPDX-License-Identifier: Apache-2.0

// Selects the exchange for each request: in order, each one once.

import FoundationEssentials
import URLLoading
import URLLoadingWire

struct ReplayState: Sendable {
    private struct Key: Hashable, Sendable {
        let method: Method
        let url: String

        init(_ method: Method, _ url: URL) {
            self.method = method
            // A fragment is never sent, and userinfo may have been removed.
            self.url = String(url.withoutUserinfo.absoluteString.prefix { $0 != "#" })
        }
    }
    enum Match: Sendable {
        case found(Recording.Exchange)
        /// No exchange matches, with the reason.
        case none(String)
    }
    private let exchanges: [Recording.Exchange]
    /// The unused indices for each key, in order.
    private var places: [Key: [Int]]

    init(_ recording: Recording) {
        exchanges = recording.exchanges
        places = Dictionary(grouping: exchanges.indices) { [exchanges] in Key(exchanges[$0].method, exchanges[$0].url) }
    }

    var unused: [Recording.Exchange] { places.values.joined().sorted().map { exchanges[$0] } }

    func knows(_ request: Request) -> Bool { places[Key(request.method, request.url)]?.isEmpty == false }

    /// Takes the exchange for a request.
    /// - Parameter body: the checksum of the request's body; `nil` accepts any body.
    mutating func take(_ request: Request, _ body: BodySum?) -> Match {
        let key = Key(request.method, request.url)
        guard let candidates = places[key] else { return .none("it is not in the recording") }
        guard !candidates.isEmpty else { return .none("it was recorded, and each exchange is used") }
        let fitting = candidates.firstIndex { place in
            guard let body else { return true }
            return (exchanges[place].body?.sum ?? BodySum()) == body
        }
        guard let fitting else { return .none("it was recorded with another body") }
        let place = candidates[fitting]
        places[key]?.remove(at: fitting)
        return .found(exchanges[place])
    }
}
