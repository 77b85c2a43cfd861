// SPDX-License-Identifier: Apache-2.0

// In this folder: the store of cookies and its rules

public import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// Stores the cookies of one or several sessions (RFC 6265bis §5.7), in memory and optionally in a file.
///
/// A store with a directory writes the persistent cookies to a file in it.
///
/// ```swift
/// let store = CookieStore()
/// var configuration = Configuration.default
/// configuration.cookies.storage = .store(store)
/// for cookie in store.cookies(for: url) { print(cookie) }
/// ```
/// All calls are synchronous and may be made from any task. A store with a file may block at the first call, which
/// reads the file, and when ``cookies(for:mainDocument:)`` or ``all`` check it again after a second.
///
/// The file is `cookies.sqlite`, readable by its owner alone, and not encrypted. Changes are written within a fraction
/// of a second, and at the latest when the process exits normally; a process that is killed loses its last changes.
/// Processes may share a directory: each sees the changes of the others about a second later, and the last one to set a
/// cookie wins.
public final class CookieStore: Sendable, CustomStringConvertible {
    /// The store of this user and this program: in `$XDG_STATE_HOME/<program>`, or `~/.local/state/<program>`. No file
    /// is created before the first persistent cookie.
    public static let shared = CookieStore(path: StorageFolders.state, limits: Limits())

    private let table: PersistedStore<CookieTable>
    let listeners = ChangeListeners()
    /// Identifies the store as an owner of cached responses. Stores of one file have the same mark in every process.
    let mark: String
    /// Not a valid raw value until a policy is set.
    private let policy = Atomic<UInt8>(.max)

    /// Makes a store in memory only.
    public convenience init(limits: Limits = Limits()) { self.init(path: nil, limits: limits) }

    /// Makes a store with a file.
    /// - Parameter directory: a `file` URL; created when it is needed. If the directory cannot be created or the file
    ///   not written, everything stays in memory, and ``problem`` says why.
    public convenience init(directory: URL, limits: Limits = Limits()) {
        self.init(path: directory.path(percentEncoded: false), limits: limits)
    }

    private init(path: String?, limits: Limits) {
        table = PersistedStore(CookieTable(limits), folder: path) { [listeners] in listeners.process(.cookies) }
        // The path itself: a digest would be the first use of OpenSSL, whose beginning takes 0.7 ms of a process.
        mark = path.map { "file " + $0 } ?? "memory \(UInt64.random(in: 0 ... .max))"
    }

    /// The limits of the number of cookies (RFC 6265bis §6.1); each is at least 1.
    public struct Limits: Sendable, Hashable {
        /// The limit for one registrable domain, including all its subdomains; 180 by default.
        public var perDomain = 180
        /// The maximum number of cookies of all domains, at least 1; 3000 by default.
        public var total = 3000

        /// Creates limits. Numbers below 1 count as 1.
        public init(perDomain: Int = 180, total: Int = 3000) {
            self.perDomain = max(1, perDomain)
            self.total = max(1, total)
        }
    }

    // MARK: Policy

    /// The cookies of servers that a store accepts.
    public enum AcceptPolicy: UInt8, Sendable, Hashable {
        /// Accepts every cookie that RFC 6265bis permits.
        case always = 0
        /// Accepts no cookie.
        case never = 1
        /// Accepts cookies only from the site of the ``Request/mainDocumentURL``; a request without one is a main
        /// document itself.
        case onlyFromMainDocument = 2
    }

    /// Which cookies of servers are accepted; ``AcceptPolicy/always`` by default. A change takes effect at once in
    /// every session that uses the store, unless the session's configuration has a policy of its own. Cookies that the
    /// caller sets are always accepted.
    public var acceptPolicy: AcceptPolicy {
        get { statedPolicy ?? .always }
        set {
            guard policy.exchange(newValue.rawValue, ordering: .relaxed) != newValue.rawValue else { return }
            listeners.process(.acceptPolicy)
        }
    }

    var statedPolicy: AcceptPolicy? { AcceptPolicy(rawValue: policy.load(ordering: .relaxed)) }

    // MARK: Cookies

    /// Returns the cookies for a URL in the order in which they are sent; counts as a use of them.
    /// - Parameter mainDocument: see ``Request/mainDocumentURL``.
    public func cookies(for url: URL, mainDocument: URL? = nil) -> [Cookie] {
        guard let context = CookieContext(url, mainDocument: mainDocument) else { return [] }
        var cookies: [Cookie] = []
        table.refresh()
        forEach(for: context) {
            cookies.append($0)
            return true
        }
        return cookies
    }

    /// All cookies that have not expired.
    public var all: [Cookie] {
        table.refresh()
        let now = Date.now
        return table.read(\.all).filter { !$0.isExpired(now) }
    }

    /// Stores a cookie, replacing one of the same name, domain and path. An expired cookie removes it.
    /// - Returns: whether the cookie is stored.
    @discardableResult
    public func set(_ cookie: Cookie) -> Bool {
        !set([cookie], isSecure: true).isEmpty
    }

    /// Takes the cookies that a response sets, as a session does: according to the rules of RFC 6265bis and to
    /// ``acceptPolicy``.
    /// - Parameters:
    ///   - url: the URL of the response.
    ///   - mainDocument: see ``Request/mainDocumentURL``.
    /// - Returns: the cookies that are stored.
    @discardableResult
    public func set(_ headers: Headers, from url: URL, mainDocument: URL? = nil) -> [Cookie] {
        guard let context = CookieContext(url, mainDocument: mainDocument) else { return [] }
        return receive(headers, context, policy: nil)
    }

    /// Removes the cookie of the same name, domain and path.
    /// - Returns: whether there was one.
    @discardableResult
    public func remove(_ cookie: Cookie) -> Bool {
        table.change { $0.remove(cookie) }
    }

    /// Removes the cookies that were first set at a moment or later; all by default. Includes those that other
    /// processes have written to the file.
    public func removeAll(since moment: Date = .distantPast) {
        table.change { $0.removeAll(since: moment) }
    }

    /// The changes of the store, from the beginning of each iteration. Undelivered changes are merged. The sequence
    /// ends when the iterating task is cancelled.
    public var changes: CookieChanges { CookieChanges(listeners: listeners) }

    /// The number of cookies, without their content.
    public var description: String { "\(table.count) cookies\(table.hasFile ? ", with a file" : "")" }

    // MARK: The file

    /// A description of the first failure with the file; `nil` without a failure or without a file. A damaged file is
    /// renamed to `cookies.sqlite.damaged`.
    public var problem: String? { table.problem }

    /// Returns when all earlier changes are in the file. Cancelling the calling task does not shorten the wait.
    @concurrent public func flush() async { await table.flush() }

    /// Reads the changes of other processes now, instead of about a second later.
    @concurrent public func reload() async { await table.reload() }

    // MARK: Inside

    func set(_ cookies: [Cookie], isSecure: Bool) -> [Cookie] {
        let now = Date.now
        return table.change { state in cookies.compactMap { state.set($0, isSecure: isSecure, now: now) } }
    }

    /// - Parameters:
    ///   - own: the session's policy; nil uses the store's.
    ///   - fallback: the policy if neither is set.
    @discardableResult
    func receive(
        _ headers: Headers, _ context: CookieContext, policy own: AcceptPolicy?,
        otherwise fallback: AcceptPolicy = .always
    ) -> [Cookie] {
        guard (own ?? statedPolicy ?? fallback).takes(context) else { return [] }
        let cookies = CookieAdmission.cookies(in: headers, context, now: Date.now)
        return cookies.isEmpty ? [] : set(cookies, isSecure: context.isSecure)
    }

    /// Calls `use` with the cookies in memory: a load that gave up waiting for the file does not wait here.
    private func forEach(for context: CookieContext, _ use: (Cookie) -> Bool) {
        guard table.count > 0 else { return }
        let now = Date.now
        table.changeMemory { $0.forEach(for: context, now: now, use) }
    }

    /// Returns the Cookie field for a request; `nil` if no cookie matches.
    /// - Parameter most: the size limit in bytes; a cookie that does not fit is left out.
    func field(for context: CookieContext, most: Int) -> String? {
        var field = ""
        field.reserveCapacity(min(most, 256))
        forEach(for: context) { cookie in
            let separator = field.isEmpty ? "" : "; "
            let length = separator.utf8.count + cookie.name.utf8.count + 1 + cookie.value.utf8.count
            guard field.utf8.count + length <= most else { return false }
            field += separator
            if !cookie.name.isEmpty {
                field += cookie.name
                field += "="
            }
            field += cookie.value
            return true
        }
        return field.isEmpty ? nil : field
    }

    /// Whether a request can be prepared without reading the file.
    var isReady: Bool { table.isFresh }
    /// Whether any cookie is known.
    var hasCookies: Bool { table.count > 0 }

    /// Reads the file, or checks it for changes of other processes, on a thread that may block.
    func load(for load: LoadHandle) async { await table.refresh(for: load) }
}
