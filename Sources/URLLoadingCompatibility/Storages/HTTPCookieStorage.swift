// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension NSNotification.Name {
    /// Posted after the cookies of an ``HTTPCookieStorage`` were changed by a session or by the program; the object is
    /// the storage. Posted asynchronously, on a thread of its own.
    public static let NSHTTPCookieManagerCookiesChanged = NSNotification.Name(
        "NSHTTPCookieManagerCookiesChangedNotification")
    /// Posted after ``HTTPCookieStorage/cookieAcceptPolicy`` was changed; the object is the storage.
    public static let NSHTTPCookieManagerAcceptPolicyChanged = NSNotification.Name(
        "NSHTTPCookieManagerAcceptPolicyChangedNotification")
}

/// The cookies of the sessions whose configuration contains this storage.
///
/// ```swift
/// for cookie in HTTPCookieStorage.shared.cookies(for: url) ?? [] { print(cookie.name) }
/// ```
/// A view of the core's `CookieStore`, which implements RFC 6265bis and the storage: ``shared`` is
/// `CookieStore.shared`, of this user and program. All members may be used from any thread.
open class HTTPCookieStorage: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private static let standard = HTTPCookieStorage(.shared)
    private static let groups = Lock<[String: HTTPCookieStorage]>([:])
    private static let poster = DispatchQueue(label: "HTTPCookieStorage")

    /// The persistent storage of this user and program.
    open class var shared: HTTPCookieStorage { standard }

    /// Returns a persistent storage shared by all programs of this user that use the same name, in
    /// `$XDG_STATE_HOME/<identifier>`. Characters that are invalid in the name of a folder are replaced.
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

    /// Creates a storage in memory, without a file.
    public override convenience init() { self.init(CookieStore()) }

    init(_ store: CookieStore) {
        self.store = store
        super.init()
        // Posted asynchronously: the store's locks are held during the change, and observers will read the store.
        listening = store.observe { [weak self] change in
            let name: NSNotification.Name =
                change == .cookies ? .NSHTTPCookieManagerCookiesChanged : .NSHTTPCookieManagerAcceptPolicyChanged
            Self.poster.async { [weak self] in
                if let self { NotificationCenter.default.post(name: name, object: self) }
            }
        }
    }

    // MARK: Cookies

    /// All cookies that have not expired.
    open var cookies: [HTTPCookie]? { store.all.map { HTTPCookie($0) } }

    /// Returns the cookies sent to a URL, in the order in which they are sent; `nil` for a URL without a host.
    open func cookies(for url: URL) -> [HTTPCookie]? {
        url.host == nil ? nil : store.cookies(for: url).map { HTTPCookie($0) }
    }

    /// Returns all cookies that have not expired, sorted. The keys are those of `NSSortDescriptor(keyPath:ascending:)`.
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

    /// Stores a cookie, replacing one with the same name, domain and path; an expired cookie removes it. Stores nothing
    /// under ``HTTPCookie/AcceptPolicy/never``.
    open func setCookie(_ cookie: HTTPCookie) {
        guard cookieAcceptPolicy != .never, let cookie = cookie.core else { return }
        store.set(cookie)
    }

    /// Stores the cookies of a response: those that its host may set and the ``cookieAcceptPolicy`` accepts.
    /// - Parameters:
    ///   - url: the URL of the response; `nil` accepts all cookies.
    ///   - mainDocumentURL: the URL of the document for which the response was loaded; `nil` for the response itself.
    open func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
        store.take(
            cookies.compactMap(\.core), from: url, mainDocument: mainDocumentURL, otherwise: .onlyFromMainDocument)
    }

    /// Removes a cookie: the one with its name, domain and path.
    open func deleteCookie(_ cookie: HTTPCookie) {
        if let cookie = cookie.core { store.remove(cookie) }
    }

    /// Removes the cookies that were first set at this date or later.
    open func removeCookies(since date: Date) { store.removeAll(since: date) }

    /// The cookies that are accepted from servers. Once set, it applies to all sessions with this storage whose
    /// configuration does not set its own policy; until then the policies of the configurations apply.
    open var cookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { HTTPCookie.AcceptPolicy(store.acceptPolicy) }
        set { store.acceptPolicy = newValue.core }
    }

    // MARK: For a task

    /// Stores the cookies of a task's response.
    open func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        let request = task.currentRequest
        setCookies(cookies, for: request?.url, mainDocumentURL: request?.mainDocumentURL)
    }

    /// Passes the cookies that are sent with a task's request to a closure.
    /// - Parameter completionHandler: called once, before this method returns.
    open func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
        completionHandler(task.currentRequest?.url.flatMap { cookies(for: $0) })
    }

    /// The number of cookies, without their content.
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
