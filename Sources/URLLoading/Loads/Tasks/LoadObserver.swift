// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import Synchronization
import URLLoadingWire

/// Receives the events of every load of a session: for logs, metrics, traces.
///
/// ```swift
/// struct Failures: LoadObserver {
///     func observe(_ event: LoadEvent, of load: LoadIdentity) {
///         if case .completed(let error?) = event { print(load, error) }
///     }
/// }
/// configuration.observers = [Failures()]
/// ```
/// Called in the load's own task, where its task-local values can be read (a stop from outside may complete a load on
/// the thread that stopped it). The load waits meanwhile: be quick, and never block. ``LoadLogger``, ``LoadStatistics``
/// and ``LoadTracer`` are observers.
public protocol LoadObserver: Sendable {
    /// Called before a request of the load is answered: the first, and one for each redirect. The observer may add
    /// fields, such as `traceparent`; it must not change the URL, which is a handler's task.
    func willSend(_ request: inout Request, of load: LoadIdentity)
    /// Called for each event, in the order of ``LoadEventOrder``, one at a time for each load. If a ``ProtocolHandler``
    /// runs two requests at once, their events may interleave, and may be reported concurrently.
    func observe(_ event: LoadEvent, of load: LoadIdentity)
}

extension LoadObserver {
    public func willSend(_ request: inout Request, of load: LoadIdentity) {}
}

/// Receives the head of every response as well, interim and refused ones and those of the cache included: `urlload -D`.
package protocol HeadObserver: LoadObserver {
    func received(_ head: HTTPHead)
}

/// The identity of the load that an event belongs to.
public struct LoadIdentity: Sendable, Identifiable, CustomStringConvertible {
    /// The identifier of the load, unique in this process.
    public let id: UInt64
    /// The caller's request.
    public let request: Request
    /// The time at which the load was created.
    public let created: ContinuousClock.Instant

    init(_ request: Request) {
        id = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
        self.request = request
        created = .now
    }
    private static let last = Atomic<UInt64>(0)

    /// The load on one line, without userinfo and query: `load 7 GET https://example.org/`.
    public var description: String { "load \(id) \(request.method) \(request.url.withoutSecrets)" }
}

extension URL {
    /// The URL without userinfo, as it may be stored.
    package var withoutUserinfo: URL {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")) else { return self }
        if let reference = try? URIReference(absoluteString) {
            return URL(string: reference.removingUserinfo.absoluteString) ?? self
        }
        return URL(string: String(decoding: Array(absoluteString.utf8).withoutUserinfo, as: UTF8.self)) ?? self
    }

    /// The URL for descriptions of the classic API: without userinfo and the values of secret parameters.
    package var redactedText: String { Secrets.hidden(inURL: absoluteString) }

    /// The host for logs; `nil` if the URL does not clearly separate the host from a password.
    var shownHost: String? { hasClearAuthority ? hostInNormalForm : nil }

    private var hasClearAuthority: Bool {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")) else { return true }
        let rest = absoluteString.dropFirst(scheme.map { $0.count + 1 } ?? 0)
        return rest.hasPrefix("//") && (try? URIReference(absoluteString)) != nil
    }

    /// The host in the form of DNS and TLS; `nil` without one. An internationalised name is its A-label (RFC 5890
    /// §2.3.2.1), such as `xn--bcher-kva.example`: every log can show it, and names that look alike stay distinct (RFC
    /// 3986 §7.6, UTS 36).
    package var hostInNormalForm: String? {
        guard let host = host() else { return nil }
        let isPlain = host.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "%") }
        return isPlain ? host : (try? Origin.Host(host))?.description ?? host
    }

    /// The URL for logs, without userinfo, query and fragment, which often contain secrets.
    package var withoutSecrets: String {
        let scheme = scheme?.lowercased() ?? ""
        // All of a data URL is content.
        guard scheme != "data" else { return "data:…" }
        guard hasClearAuthority else { return "\(scheme):…" }
        var text = "\(scheme):"
        if let host = hostInNormalForm { text += host.contains(":") ? "//[\(host)]" : "//\(host)" }
        if let port { text += ":\(port)" }
        return text + path()
    }
}
