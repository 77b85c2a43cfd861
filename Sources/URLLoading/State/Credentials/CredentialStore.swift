// SPDX-License-Identifier: Apache-2.0

// In this folder: the stores of credentials, a credential in use, and the bearer token with its renewal

public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// Stores credentials by protection space, in memory and optionally in a file.
///
/// ``Credential/Persistence/permanent`` credentials are written to the file, if there is one.
///
/// ```swift
/// let store = CredentialStore()
/// store.set(Credential(user: "ada", password: "secret"), for: ProtectionSpace(
///     host: "example.org", port: 443, scheme: "https", realm: "staff", method: .digest))
/// configuration.authentication.credentialStore = store
/// ```
/// A load looks for a credential of the challenging space first; then for one of the same server and realm for
/// ``Challenge/Method/any``; then for one of the same server for any method and without a realm.
///
/// All calls are synchronous and may be made from any task; those that read or write the file may block. Processes that
/// share a file wait for each other, for two seconds at most, and each call sees the changes of the others.
///
/// The file is not encrypted: it is readable by its owner alone (0600), and replaced atomically. A file of more than 4
/// MiB, or one that other users may write to, directly or through its folder, is neither read nor overwritten
/// (``problem``). A file that is not in the store's format is renamed (`.damaged`) at the next change. A session adds
/// at most 32 spaces of one server by itself.
public final class CredentialStore: Sendable, CustomStringConvertible {
    /// The store of this user and this program: `credentials.json` in `$XDG_STATE_HOME/<program>`, or in
    /// `~/.local/state/<program>`. The file is created when the first credential is written.
    public static let shared = CredentialStore(file: CredentialFile.standardURL)

    private let memory = Lock(CredentialTable())
    private let file: CredentialFile?
    /// The sessions that send credentials of this store without being challenged.
    private let users = Lock<[ObjectIdentifier: User]>([:])
    private struct User: Sendable { weak let user: (any CredentialUser)? }

    /// Creates a store, in memory or with a file for permanent credentials.
    /// - Parameter file: a `file` URL; `nil` keeps everything in memory. Its folder is created when it is needed.
    public init(file: URL? = nil) { self.file = file.map { CredentialFile($0.path(percentEncoded: false)) } }

    /// Returns the credential to propose for a space: the one that was set last.
    public func credential(for space: ProtectionSpace) -> Credential? { table.credential(for: space) }

    /// Returns all credentials for exactly this space, the one set last first.
    public func credentials(for space: ProtectionSpace) -> [Credential] { table.credentials[space]?.reversed() ?? [] }

    /// All credentials, by space.
    public var all: [ProtectionSpace: [Credential]] { table.credentials.mapValues { $0.reversed() } }

    /// Stores a credential, replacing one of the same user. A ``Credential/Persistence/permanent`` one goes to the
    /// file; if there is no file, or it cannot be written, the credential stays in memory. A credential with
    /// ``Credential/Persistence/none`` is not stored.
    /// - Returns: whether it is stored as its persistence demands.
    @discardableResult
    public func set(_ credential: Credential, for space: ProtectionSpace) -> Bool {
        switch credential.persistence {
        case .none: return false
        case .session: break
        case .permanent:
            if let file, file.change({ $0.set(credential, for: space) }) {
                memory.withLock { $0.remove(credential, for: space) }
                return true
            }
        }
        memory.withLock { $0.set(credential, for: space) }
        return credential.persistence == .session
    }

    /// Removes the credential of the same user, from the file too. The sessions of this process stop sending it. If
    /// the file cannot be changed for now (``problem``), this store leaves out what it still has, and removes it at the
    /// next access, or when the process exits.
    public func remove(_ credential: Credential, for space: ProtectionSpace) {
        memory.withLock { $0.remove(credential, for: space) }
        file?.remove(.one(credential, space))
        for user in live { user.forget(credential, for: space) }
    }

    /// Removes all credentials, from the file too, as ``remove(_:for:)`` does. Sessions of this process that use the
    /// store forget their logins, and send no credential until a server challenges again. Loads that are running are
    /// not affected.
    public func removeAll() {
        memory.withLock { $0 = CredentialTable() }
        file?.remove(.all)
        for user in live { user.forgetAll() }
    }

    private var live: [any CredentialUser] { users.withLock { $0.values.compactMap(\.user) } }
    func add(_ user: any CredentialUser) { users.withLock { $0[ObjectIdentifier(user)] = User(user: user) } }
    func remove(_ user: ObjectIdentifier) { users.withLock { $0[user] = nil } }

    private var table: CredentialTable {
        var table = file?.read() ?? CredentialTable()
        for (space, credentials) in memory.withLock({ $0.credentials }) {
            for credential in credentials { table.set(credential, for: space) }
        }
        return table
    }

    /// A description of the first failure with the file; `nil` if there was none, or if the store has no file.
    public var problem: String? { file?.problem }

    /// The number of protection spaces, without their names.
    public var description: String {
        "\(table.credentials.count) protection spaces\(file == nil ? "" : ", with a file")"
    }
}

/// Credentials by space; the last element was set last.
struct CredentialTable: Sendable {
    var credentials: [ProtectionSpace: [Credential]] = [:]

    mutating func set(_ credential: Credential, for space: ProtectionSpace) {
        remove(credential, for: space)
        credentials[space, default: []].append(credential)
    }

    mutating func remove(_ credential: Credential, for space: ProtectionSpace) {
        credentials[space]?.removeAll { $0.user == credential.user && ($0.token == nil) == (credential.token == nil) }
        if credentials[space]?.isEmpty == true { credentials[space] = nil }
    }

    func credential(for space: ProtectionSpace) -> Credential? {
        credentials[space]?.last ?? credentials[space.with(.any, realm: space.realm)]?.last
            ?? credentials[space.with(.any, realm: nil)]?.last ?? credentialOfHost(for: space)
    }

    /// A Basic challenge that names no realm has that of the host on Apple's platforms.
    private func credentialOfHost(for space: ProtectionSpace) -> Credential? {
        guard space.realm == nil, space.method == .basic else { return nil }
        return credentials[space.with(.basic, realm: space.host)]?.last
            ?? credentials[space.with(.any, realm: space.host)]?.last
    }
}

extension ProtectionSpace {
    fileprivate func with(_ method: Challenge.Method, realm: String?) -> ProtectionSpace {
        ProtectionSpace(host: host, port: port, scheme: scheme, realm: realm, method: method, isProxy: isProxy)
    }
}

/// Sends credentials of a store without being challenged, until it is told to forget them.
protocol CredentialUser: AnyObject, Sendable {
    func forget(_ credential: Credential, for space: ProtectionSpace)
    func forgetAll()
}
