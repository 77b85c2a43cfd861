// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// An option of ``URLCredentialStorage/remove(_:for:options:)``, without effect here.
public let NSURLCredentialStorageRemoveSynchronizableCredentials =
    "NSURLCredentialStorageRemoveSynchronizableCredentials"

extension NSNotification.Name {
    /// Posted when a ``URLCredentialStorage`` was changed through its own methods; the object is the storage.
    public static let NSURLCredentialStorageChanged = NSNotification.Name("NSURLCredentialStorageChangedNotification")
}

/// Credentials by protection space; permanent ones are kept in a file of this user (mode 0600).
///
/// ```swift
/// let space = URLProtectionSpace(host: "example.org", port: 443, protocol: "https", realm: "staff",
///                                authenticationMethod: NSURLAuthenticationMethodHTTPDigest)
/// URLCredentialStorage.shared.setDefaultCredential(
///     URLCredential(user: "ada", password: "secret", persistence: .permanent), for: space)
/// ```
/// A view of the core's `CredentialStore`, which documents how credentials are looked up.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private static let standard = URLCredentialStorage(.shared)
    /// The storage of this user, backed by a file.
    open class var shared: URLCredentialStorage { standard }

    final let store: CredentialStore
    private enum Default: Sendable, Equatable {
        case user(String)
        /// The default was removed: no other credential of the space takes its place.
        case removed
    }
    /// The default credentials, for the spaces for which a default was set.
    private let defaults = Lock<[ProtectionSpace: Default]>([:])

    /// Creates a storage in memory, without a file.
    public override init() { store = CredentialStore() }

    init(_ store: CredentialStore) { self.store = store }

    // MARK: Reading

    /// Returns the credentials stored for exactly this space, by user name; `nil` if there are none.
    open func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
        let found = store.credentials(for: space.core)
        return found.isEmpty ? nil : Self.byUser(found)
    }

    /// All credentials, by protection space and user.
    open var allCredentials: [URLProtectionSpace: [String: URLCredential]] {
        var all: [URLProtectionSpace: [String: URLCredential]] = [:]
        for (space, credentials) in store.all { all[URLProtectionSpace(space)] = Self.byUser(credentials) }
        return all
    }

    /// Returns the default credential of a space, `nil` once it was removed. For a space without a default, the
    /// credential stored last.
    open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        let space = space.core
        switch defaults.withLock({ $0[space] }) {
        case .user(let user)?:
            return store.credentials(for: space).first { $0.user == user && $0.token == nil }.map { URLCredential($0) }
        case .removed?: return nil
        case nil: return store.credential(for: space).map { URLCredential($0) }
        }
    }

    private static func byUser(_ credentials: [Credential]) -> [String: URLCredential] {
        Dictionary(credentials.filter { $0.token == nil }.map { ($0.user, URLCredential($0)) }) { first, _ in first }
    }

    // MARK: Changing

    /// Stores a credential, replacing one of the same user. Only passwords are stored, and none with
    /// ``URLCredential/Persistence/none``.
    open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard let stored = credential.stored, stored.persistence != .none else { return }
        let space = space.core
        let present = store.credentials(for: space)
        store.set(stored, for: space)
        // The core proposes the credential stored last, so the default is stored again after every other one.
        if case .user(let user)? = defaults.withLock({ $0[space] }), user != stored.user,
            let standard = present.first(where: { $0.user == user })
        {
            store.set(standard, for: space)
        }
        if !present.contains(stored) { changed() }
    }

    /// Stores a credential and makes it the default of its protection space.
    open func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard let stored = credential.stored, stored.persistence != .none else { return }
        let space = space.core
        let isPresent = store.credentials(for: space).contains(stored)
        let before = defaults.withLock { $0.updateValue(.user(stored.user), forKey: space) }
        store.set(stored, for: space)
        if !isPresent || before != .user(stored.user) { changed() }
    }

    /// Removes a credential; sessions with this storage stop sending it.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        remove(credential, for: space, options: nil)
    }

    /// Removes a credential.
    /// - Parameter options: without effect, because nothing is synchronized with other machines.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace, options: [String: AnyObject]? = [:]) {
        guard let stored = credential.stored else { return }
        let space = space.core
        let isPresent = store.credentials(for: space).contains { $0.user == stored.user && $0.token == nil }
        store.remove(stored, for: space)
        let isLast = store.credentials(for: space).isEmpty
        defaults.withLock { defaults in
            if isLast {
                defaults[space] = nil
            } else if defaults[space] == .user(stored.user) {
                defaults[space] = .removed
            }
        }
        if isPresent { changed() }
    }

    private func changed() { NotificationCenter.default.post(name: .NSURLCredentialStorageChanged, object: self) }

    // MARK: For a task: the same for every task

    /// Passes the credentials of a protection space, by user, to a handler, for a task.
    public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: ([String: URLCredential]?) -> Void
    ) { completionHandler(credentials(for: protectionSpace)) }

    /// Stores a credential that a task has used.
    public func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        set(credential, for: protectionSpace)
    }

    /// Removes a credential that a task has used.
    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: AnyObject]? = [:],
        task: URLSessionTask
    ) { remove(credential, for: protectionSpace, options: options) }

    /// Passes the default credential of a protection space to a handler, for a task.
    public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: (URLCredential?) -> Void
    ) { completionHandler(defaultCredential(for: space)) }

    /// Stores a credential that a task has used, as the default of its protection space.
    public func setDefaultCredential(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) { setDefaultCredential(credential, for: protectionSpace) }
}
