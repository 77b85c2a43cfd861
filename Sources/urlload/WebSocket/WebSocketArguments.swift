// SPDX-License-Identifier: Apache-2.0

// The options of `urlload ws` beside those of all loads.

import FoundationEssentials
import URLLoading

struct WebSocketArguments {
    private(set) var isBinary = false
    private(set) var protocols: [String] = []
    /// The time to keep receiving after the end of the input; `nil` for none.
    private(set) var wait: Duration?
    private(set) var options = WebSocketOptions()

    /// Takes the options of `ws` from the arguments; returns the rest.
    mutating func take(_ arguments: [String]) throws(UsageError) -> [String] {
        var rest: [String] = []
        var words = arguments[...]
        while let word = words.popFirst() {
            switch word {
            case "--": return rest + [word] + words
            case "--binary": isBinary = true
            case "--compress": options.compression = .deflate()
            // The value of `--wait` is attached with `=`; the next argument is never its value.
            case "--wait": wait = Self.forever
            case "--protocol", "--ping":
                guard let value = words.popFirst() else { throw UsageError("\(word) needs a value") }
                try take(word, value)
            case _ where word.hasPrefix("--protocol=") || word.hasPrefix("--ping=") || word.hasPrefix("--wait="):
                let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                try take(String(parts[0]), String(parts[1]))
            default: rest.append(word)
            }
        }
        return rest
    }

    private mutating func take(_ name: String, _ value: String) throws(UsageError) {
        guard name != "--protocol" else { return protocols.append(value) }
        guard let seconds = Double(value), seconds > 0, seconds < 1e9 else { throw UsageError("\(name) takes seconds") }
        if name == "--ping" { options.pingInterval = .seconds(seconds) } else { wait = .seconds(seconds) }
    }

    private static let forever = Duration.seconds(1 << 40)

    /// Adds a missing scheme: http for this machine, otherwise https, which stand for ws and wss.
    static func url(_ text: String) -> URL? {
        guard let url = AddressText.url(text) else { return nil }
        guard
            text.lowercased().hasPrefix("ws:") || text.lowercased().hasPrefix("wss:") || url.scheme == "http"
                || url.scheme == "https"
        else { return nil }
        return url
    }

    /// The bytes to write for a message.
    func bytes(of message: WebSocketMessage) -> [UInt8] {
        switch message {
        case .text(let text): Array(text.utf8) + (isBinary ? [] : [0x0A])
        case .data(let data): Array(data) + (isBinary ? [] : [0x0A])
        }
    }
}
