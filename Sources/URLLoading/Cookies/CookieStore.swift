public import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// The cookies of one or several sessions (RFC 6265bis §5.7): in memory, and, if it has a folder, those with a date of
/// their own in a file there too.
///
/// ```swift
/// let store = CookieStore()
/// var configuration = Configuration.default
/// configuration.cookies.storage = .store(store)
/// for cookie in store.cookies(for: url) { print(cookie) }
/// ```
/// All calls are synchronous and may be made from any task. A store with a file may block at the first call, which reads it,
/// and when ``cookies(for:mainDocument:)`` or ``all`` look at it again after a second;
/// it is written behind, within a fraction of a second and at the latest when the process exits normally. Processes may
/// share a folder: what one has written the others see about a second later, and of two that set the same cookie the last
/// one counts. Who is killed loses what he set in the last moments. The file is `cookies.sqlite`, readable by its owner
/// alone, and not encrypted.
public final class CookieStore: Sendable, CustomStringConvertible {
    /// Of this user and this program: in `$XDG_STATE_HOME/<program>`, or `~/.local/state/<program>`. Nothing is made before
    /// there is something to keep.
    public static let shared = CookieStore(path: StorageFolders.state, limits: Limits())

    let memory: CookieMemory
    private let disk: StateDisk<CookieMemory>?
    /// By which a cache knows whose cookies opened what it keeps: that of the same file is the same in every process.
    let mark: String
    /// Not one of the policies until somebody has said one.
    private let policy = Atomic<UInt8>(.max)

    /// In memory alone.
    public convenience init(limits: Limits = Limits()) { self.init(path: nil, limits: limits) }

    /// With a file.
    /// - Parameter directory: a `file` URL; made when it is needed. If it cannot be, or the file cannot be written,
    ///   everything stays in memory: ``problem`` says so.
    public convenience init(directory: URL, limits: Limits = Limits()) {
        self.init(path: directory.path(percentEncoded: false), limits: limits)
    }

    private init(path: String?, limits: Limits) {
        memory = CookieMemory(limits, hasFile: path != nil)
        mark = path.map { "file " + Digest.hex($0.utf8) } ?? "memory \(UInt64.random(in: 0 ... .max))"
        disk = path.map { [memory] in StateDisk(folder: $0, memory: memory) }
    }

    deinit {
        guard let disk, memory.hasPending else { return }
        BlockingThreads.files.run { disk.write() }
    }

    /// How many cookies there may be (RFC 6265bis §6.1). Each is at least 1.
    public struct Limits: Sendable, Hashable {
        /// Under one name that somebody can register, all its subdomains together.
        public var perDomain = 180
        public var total = 3000

        public init(perDomain: Int = 180, total: Int = 3000) {
            self.perDomain = max(1, perDomain)
            self.total = max(1, total)
        }
    }

    // MARK: Policy

    /// Which cookies of servers are taken.
    public enum AcceptPolicy: UInt8, Sendable, Hashable {
        case always = 0
        case never = 1
        /// Only of the site of the ``Request/mainDocumentURL``; a request without one is a main document itself.
        case onlyFromMainDocument = 2
    }

    /// Which cookies of servers are taken; ``AcceptPolicy/always`` by default. A change holds at once for every session that
    /// uses the store, unless its configuration says otherwise. Cookies that the caller sets are always taken.
    public var acceptPolicy: AcceptPolicy {
        get { statedPolicy ?? .always }
        set {
            guard policy.exchange(newValue.rawValue, ordering: .relaxed) != newValue.rawValue else { return }
            memory.policyChanged()
        }
    }

    var statedPolicy: AcceptPolicy? { AcceptPolicy(rawValue: policy.load(ordering: .relaxed)) }

    // MARK: Cookies

    /// Those that go to a URL, in the order in which they go; counts as a use of them.
    /// - Parameter mainDocument: see ``Request/mainDocumentURL``.
    public func cookies(for url: URL, mainDocument: URL? = nil) -> [Cookie] {
        guard let context = CookieContext(url, mainDocument: mainDocument) else { return [] }
        var cookies: [Cookie] = []
        disk?.refresh()
        forEach(for: context) {
            cookies.append($0)
            return true
        }
        return cookies
    }

    /// Every cookie that has not ended.
    public var all: [Cookie] {
        disk?.refresh()
        let now = Date.now
        return memory.all.filter { !$0.isExpired(now) }
    }

    /// Keeps a cookie, in place of one of the same name, domain and path. One that has ended removes it.
    /// - Returns: whether it is kept.
    @discardableResult
    public func set(_ cookie: Cookie) -> Bool {
        !set([cookie], isSecure: true).isEmpty
    }

    /// Takes the cookies that an answer sets, as a session does: by the rules for them, and by ``acceptPolicy``.
    /// - Parameters:
    ///   - url: where the answer comes from.
    ///   - mainDocument: see ``Request/mainDocumentURL``.
    /// - Returns: those that are kept.
    @discardableResult
    public func set(_ headers: Headers, from url: URL, mainDocument: URL? = nil) -> [Cookie] {
        guard let context = CookieContext(url, mainDocument: mainDocument) else { return [] }
        return receive(headers, context, policy: nil)
    }

    /// Removes the cookie of the same name, domain and path.
    /// - Returns: whether there was one.
    @discardableResult
    public func remove(_ cookie: Cookie) -> Bool {
        open()
        defer { changed() }
        return memory.remove(cookie)
    }

    /// Removes those that were first set at a moment or later; all by default. Also those in the file that other processes
    /// have set.
    public func removeAll(since moment: Date = .distantPast) {
        open()
        memory.removeAll(since: moment)
        changed()
    }

    /// What changes, from each iteration's beginning. Changes that nobody has taken yet are one. Ends when the task that
    /// iterates is cancelled.
    public var changes: CookieChanges { CookieChanges(memory: memory) }

    /// How many there are, and nothing of them.
    public var description: String { "\(memory.count) cookies\(disk == nil ? "" : ", with a file")" }

    // MARK: The file

    /// What went wrong with the file first; `nil` if nothing did, or there is none. A damaged one was set aside, as
    /// `cookies.sqlite.damaged`.
    public var problem: String? { disk?.problem }

    /// Returns when what was set is in the file. Cancelling the calling task does not shorten the wait.
    @concurrent public func flush() async {
        guard let disk else { return }
        _ = await BlockingThreads.files.call(.never) { disk.write() }
    }

    /// Sees at once what other processes have written, instead of about a second later.
    @concurrent public func reload() async {
        guard let disk else { return }
        _ = await BlockingThreads.files.call(.never) {
            disk.load()
            disk.look()
        }
    }

    // MARK: Inside

    private func open() { disk?.load() }

    private func changed() { if let disk, memory.hasPending { disk.schedule() } }

    func set(_ cookies: [Cookie], isSecure: Bool) -> [Cookie] {
        open()
        let stored = memory.set(cookies, isSecure: isSecure, now: Date.now)
        changed()
        return stored
    }

    /// - Parameters:
    ///   - own: of the session; the store's if it has none.
    ///   - fallback: if the store has none either.
    @discardableResult
    func receive(
        _ headers: Headers, _ context: CookieContext, policy own: AcceptPolicy?,
        otherwise fallback: AcceptPolicy = .always
    ) -> [Cookie] {
        guard (own ?? statedPolicy ?? fallback).takes(context) else { return [] }
        let cookies = CookieAdmission.cookies(in: headers, context, now: Date.now)
        return cookies.isEmpty ? [] : set(cookies, isSecure: context.isSecure)
    }

    /// Of what is in memory: who gave up waiting for the file does not wait here.
    private func forEach(for context: CookieContext, _ use: (Cookie) -> Bool) {
        if memory.forEach(for: context, now: Date.now, use) { disk?.schedule() }
    }

    /// The Cookie field for a request; `nil` if nothing goes to it.
    /// - Parameter most: bytes; a cookie that does not fit is left out.
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

    /// Whether a request can be made ready without a look at a file.
    var isReady: Bool { disk?.isFresh ?? true }
    /// Whether there is anything for any request, as far as is known.
    var hasCookies: Bool { memory.count > 0 }

    /// Reads the file, or looks what others have written, where a load can wait for it.
    ///
    /// What another process has removed or renewed is not sent once more by one that was idle.
    func load(for load: LoadHandle) async {
        guard let disk else { return }
        _ = await BlockingThreads.files.call(load) { disk.refresh() }
    }
}
