package import FoundationEssentials
import Synchronization
import URLLoadingWire

/// Hears of every load of a session: for logs, metrics, traces.
///
/// ```swift
/// struct Failures: LoadObserver {
///     func observe(_ event: LoadEvent, of load: LoadIdentity) {
///         if case .completed(let error?) = event { print(load, error) }
///     }
/// }
/// configuration.observers = [Failures()]
/// ```
/// Called in the load's own task, where its task-local values can be read (a stop from outside may
/// complete a load on the thread that stopped it). The load waits meanwhile: be quick, and never block.
/// ``LoadLogger``, ``LoadStatistics`` and ``LoadTracer`` are observers.
public protocol LoadObserver: Sendable {
    /// A request of the load is about to be answered: the first, and one for each redirect. Fields may
    /// be added here, such as `traceparent`; the URL is not to be changed (handlers do that).
    func willSend(_ request: inout Request, of load: LoadIdentity)
    /// Something happened. Events of one load come one after the other, in the order of
    /// ``LoadEventOrder``. Where a ``ProtocolHandler`` has two requests under way at once, events of the two may mix,
    /// and come at once.
    func observe(_ event: LoadEvent, of load: LoadIdentity)
}

extension LoadObserver {
    public func willSend(_ request: inout Request, of load: LoadIdentity) {}
}

/// Which load an event belongs to.
public struct LoadIdentity: Sendable, Identifiable, CustomStringConvertible {
    /// Unique in this process.
    public let id: UInt64
    /// What the caller asked for.
    public let request: Request
    /// When it was made.
    public let created: ContinuousClock.Instant

    init(_ request: Request) {
        id = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
        self.request = request
        created = .now
    }
    private static let last = Atomic<UInt64>(0)

    /// `load 7 GET https://example.org/`: no userinfo, no query.
    public var description: String { "load \(id) \(request.method) \(request.url.withoutSecrets)" }
}

extension URL {
    /// The URL as it may be stored.
    package var withoutUserinfo: URL {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")) else { return self }
        if let reference = try? URIReference(absoluteString) {
            return URL(string: reference.removingUserinfo.absoluteString) ?? self
        }
        return URL(string: String(decoding: Array(absoluteString.utf8).withoutUserinfo, as: UTF8.self)) ?? self
    }

    /// The URL as the classic layer's descriptions show it: without userinfo and the values of secret parameters.
    package var redactedText: String { Secrets.hidden(inURL: absoluteString) }

    /// The host as it may be shown; `nil` where the grammar does not say what is host and what is password.
    var shownHost: String? { hasClearAuthority ? hostInNormalForm : nil }

    private var hasClearAuthority: Bool {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")) else { return true }
        let rest = absoluteString.dropFirst(scheme.map { $0.count + 1 } ?? 0)
        return rest.hasPrefix("//") && (try? URIReference(absoluteString)) != nil
    }

    /// The host as DNS and TLS know it; `nil` without one. An internationalised name is its A-label (RFC 5890
    /// §2.3.2.1), such as `xn--bcher-kva.example`: every log can show it, and two names that look alike stay apart
    /// (RFC 3986 §7.6, UTS 36).
    package var hostInNormalForm: String? {
        guard let host = host() else { return nil }
        let isPlain = host.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "%") }
        return isPlain ? host : (try? Origin.Host(host))?.description ?? host
    }

    /// The URL as it may be shown: userinfo, query and fragment often carry secrets.
    package var withoutSecrets: String {
        let scheme = scheme?.lowercased() ?? ""
        // The whole of it is content.
        guard scheme != "data" else { return "data:…" }
        guard hasClearAuthority else { return "\(scheme):…" }
        var text = "\(scheme):"
        if let host = hostInNormalForm { text += host.contains(":") ? "//[\(host)]" : "//\(host)" }
        if let port { text += ":\(port)" }
        return text + path()
    }
}
