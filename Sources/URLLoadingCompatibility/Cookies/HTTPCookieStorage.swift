public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension NSNotification.Name {
    /// Cookies of a ``HTTPCookieStorage`` have changed, by a session or by hand; it is the object. Posted soon after, on a
    /// thread of its own.
    public static let NSHTTPCookieManagerCookiesChanged = NSNotification.Name(
        "NSHTTPCookieManagerCookiesChangedNotification")
    /// The same of its ``HTTPCookieStorage/cookieAcceptPolicy``.
    public static let NSHTTPCookieManagerAcceptPolicyChanged = NSNotification.Name(
        "NSHTTPCookieManagerAcceptPolicyChangedNotification")
}

/// Cookies of the sessions that have it in their configuration.
///
/// ```swift
/// for cookie in HTTPCookieStorage.shared.cookies(for: url) ?? [] { print(cookie.name) }
/// ```
/// A view of the core's `CookieStore`, which says what is taken (RFC 6265bis) and how it is kept: ``shared`` is
/// `CookieStore.shared`, of this user and program. All of it may be used from any thread.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
    private static let standard = HTTPCookieStorage(.shared)
    private static let groups = Lock<[String: HTTPCookieStorage]>([:])
    private static let poster = DispatchQueue(label: "HTTPCookieStorage")

    /// Of this user and program, across runs.
    open class var shared: HTTPCookieStorage { standard }

    /// Of all programs of this user that know the name, across runs: in `$XDG_STATE_HOME/<identifier>`. What a name holds
    /// that is no name of a folder is replaced.
    open class func sharedCookieStorage(forGroupContainerIdentifier identifier: String) -> HTTPCookieStorage {
        let name = String(identifier.map { $0 == "/" || $0 == "\0" ? "_" : $0 })
        return groups.withLock { groups in
            let isName = !["", ".", ".."].contains(name)
            let folder = StorageFolders.state(sharedAs: isName ? name : "_" + name)
            let storage =
                groups[folder]
                ?? HTTPCookieStorage(CookieStore(directory: URL(fileURLWithPath: folder, isDirectory: true)))
            groups[folder] = storage
            return storage
        }
    }

    final let store: CookieStore
    private var listening: AnyObject?

    /// One in memory alone.
    public override convenience init() { self.init(CookieStore()) }

    init(_ store: CookieStore) {
        self.store = store
        super.init()
        // Not within the change: its locks are held, and whoever hears of it will look.
        listening = store.observe { [weak self] change in
            let name: NSNotification.Name =
                change == .cookies ? .NSHTTPCookieManagerCookiesChanged : .NSHTTPCookieManagerAcceptPolicyChanged
            Self.poster.async { [weak self] in
                if let self { NotificationCenter.default.post(name: name, object: self) }
            }
        }
    }

    // MARK: Cookies

    /// All that have not ended.
    open var cookies: [HTTPCookie]? { store.all.map { HTTPCookie($0) } }

    /// Those that go to a URL, in the order in which they go; `nil` for a URL without a host.
    open func cookies(for url: URL) -> [HTTPCookie]? {
        url.host == nil ? nil : store.cookies(for: url).map { HTTPCookie($0) }
    }

    /// All that have not ended, in this order. Keys are those of `NSSortDescriptor(keyPath:ascending:)`.
    open func sortedCookies(using sortOrder: [NSSortDescriptor]) -> [HTTPCookie] {
        (cookies ?? []).sorted { left, right in
            for descriptor in sortOrder {
                switch descriptor.compare(left, to: right) {
                case .orderedAscending: return true
                case .orderedDescending: return false
                case .orderedSame: continue
                }
            }
            return false
        }
    }

    /// Keeps a cookie in place of one of the same name, domain and path; one that has ended removes it. Nothing is kept
    /// under ``HTTPCookie/AcceptPolicy/never``.
    open func setCookie(_ cookie: HTTPCookie) {
        guard cookieAcceptPolicy != .never, let cookie = cookie.core else { return }
        store.set(cookie)
    }

    /// Keeps the cookies of an answer: those that its host may set, and by the ``cookieAcceptPolicy``.
    /// - Parameters:
    ///   - url: where they come from; `nil` takes all.
    ///   - mainDocumentURL: on whose behalf they were loaded; `nil` for their own.
    open func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
        store.take(
            cookies.compactMap(\.core), from: url, mainDocument: mainDocumentURL, otherwise: .onlyFromMainDocument)
    }

    open func deleteCookie(_ cookie: HTTPCookie) {
        if let cookie = cookie.core { store.remove(cookie) }
    }

    /// Removes those that were set first at this moment or later.
    open func removeCookies(since date: Date) { store.removeAll(since: date) }

    /// Which cookies of servers are taken. Once it was set it holds at once for every session with this storage, unless
    /// its configuration says otherwise; until then what those configurations say holds.
    open var cookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { HTTPCookie.AcceptPolicy(store.acceptPolicy) }
        set { store.acceptPolicy = newValue.core }
    }

    // MARK: For a task

    /// Keeps the cookies of a task's answer.
    open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        let request = task.currentRequest
        setCookies(cookies, for: request?.url, mainDocumentURL: request?.mainDocumentURL)
    }

    /// Gives those that go with a task's request.
    /// - Parameter completionHandler: called once, before this returns.
    open func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
        completionHandler(task.currentRequest?.url.flatMap { cookies(for: $0) })
    }

    /// How many there are, and nothing of them.
    open override var description: String { "<HTTPCookieStorage \(store)>" }
}

extension HTTPCookie.AcceptPolicy {
    init(_ policy: CookieStore.AcceptPolicy) {
        self =
            switch policy {
            case .always: .always
            case .never: .never
            case .onlyFromMainDocument: .onlyFromMainDocumentDomain
            }
    }

    var core: CookieStore.AcceptPolicy {
        switch self {
        case .always: .always
        case .never: .never
        case .onlyFromMainDocumentDomain: .onlyFromMainDocument
        }
    }
}
