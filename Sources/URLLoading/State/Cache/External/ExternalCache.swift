// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A cache outside the library, and how a session uses it: ``Configuration/Caching-swift.struct/external``.
///
/// ```swift
/// var external = ExternalCache(RedisResponseStore(host: "cache.internal"), isShared: true)
/// external.timeout = .milliseconds(50)
/// configuration.caching.external = external
/// ```
/// What may be stored is decided before the store is asked. A response is given to it only if it is complete, has a
/// lifetime or a validator, sets no cookie, and has no owner: none that was obtained with a login, a cookie, a
/// client certificate or a signature, with a Host field of the caller's, or by a resolver or proxies of the
/// configuration, and none that only a decision trusts. A session whose TLS settings skip verification or concede
/// anything (``Configuration/TLS/unsafeConcessions``) neither gives it anything nor asks it. A handler's response is
/// given to it if its ``Response/storagePolicy-swift.property`` is ``Response/StoragePolicy/allowed``. Sessions with
/// other roots, pins or TLS requirements have entries of their own.
public struct ExternalCache: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The store.
    public var store: any ResponseStore
    /// Whether several users share the store, so that the rules of a shared cache apply (RFC 9111 §3, §3.5): a response
    /// with `private` is not stored, `s-maxage` and `proxy-revalidate` count, and a response to a request with an
    /// Authorization field is stored, for everyone, only if it has `public` or `s-maxage`. True by default. Entries of
    /// sessions with the other value are not used.
    ///
    /// With false the store belongs to one user, as a file of the program does, and nothing that was requested with
    /// Authorization is stored.
    public var isShared: Bool
    /// How long a load waits for its entry, all calls and the whole value included, and how long storing one or
    /// removing one may take; more than zero. 250 ms by default. A load never waits longer than for its idle timeout,
    /// and never for what is stored.
    public var timeout = Duration.milliseconds(250)
    /// The largest body that is stored, in bytes, at least 0; 1 MiB by default. A body is stored as the caller gets it,
    /// decoded.
    public var maximumEntrySize = 1 << 20
    /// How many bytes of bodies the session may hold for the store in all, in bytes, at least 0: those being read from
    /// it, collected for it, and waiting to be written. 32 MiB by default. What exceeds it is not stored, or loaded
    /// from the server: no load waits for a store that is slow.
    public var maximumBufferedSize = 32 << 20
    /// A key with which entries are signed (HMAC-SHA256): the session then uses only entries of sessions with the same
    /// key. Without one, the default, every program that may write to the store can answer the session's requests. At
    /// least 16 bytes; with a shorter one nothing is stored and nothing is used.
    public var signingKey: Data?
    static let leastSigningKey = 16

    /// Creates the settings of a store.
    /// - Parameters:
    ///   - store: may be used by any number of sessions, programs and machines.
    ///   - isShared: whether several users share it.
    public init(_ store: any ResponseStore, isShared: Bool = true) {
        (self.store, self.isShared) = (store, isShared)
    }

    /// The kind of the store, and how it is used, without the key: `external cache TableStore, shared, signed`.
    public var description: String {
        "external cache \(type(of: store)), \(isShared ? "shared" : "of one user")\(signingKey == nil ? "" : ", signed")"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["store": "\(type(of: store))", "isShared": isShared]) }
}
