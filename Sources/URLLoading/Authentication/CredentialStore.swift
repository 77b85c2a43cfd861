public import FoundationEssentials
import Synchronization
import URLLoadingIO

/// Credentials by protection space: in memory, and, if it has a file, those that are ``Credential/Persistence/permanent``
/// there too.
///
/// ```swift
/// let store = CredentialStore()
/// store.set(Credential(user: "ada", password: "secret"), for: ProtectionSpace(
///     host: "example.org", port: 443, scheme: "https", realm: "staff", method: .digest))
/// configuration.authentication.credentialStore = store
/// ```
/// A load looks for a credential of the very space that asks; then for one of the same server and realm for
/// ``Challenge/Method/any``; then for one of the same server for any method and without a realm. All calls are
/// synchronous, from any task; those that read or write the file may block. Processes that share a file wait for each
/// other, and each call sees what the others have written. It does not encrypt: its file is readable by its owner
/// alone (0600), and replaced in one step. One that others may write to, or whose folder they may write to, or of more than
/// 4 MiB, is neither read nor written over (``problem``); one that is no store's is put aside (`.damaged`) when there is something to keep. Of one server a session keeps at
/// most 32 spaces by itself.
public final class CredentialStore: Sendable, CustomStringConvertible {
    /// Of this user and this program: `credentials.json` in `$XDG_STATE_HOME/<program>`, or in `~/.local/state/<program>`. Not made
    /// before there is something to keep.
    public static let shared = CredentialStore(file: CredentialFile.standardURL)

    private let memory = Lock(CredentialTable())
    private let file: CredentialFile?
    /// Who says unasked what is kept here.
    private let users = Lock<[ObjectIdentifier: User]>([:])
    private struct User: Sendable { weak let user: (any CredentialUser)? }

    /// - Parameter file: a `file` URL; `nil` keeps everything in memory. Its folder is made when it is needed.
    public init(file: URL? = nil) { self.file = file.map { CredentialFile($0.path(percentEncoded: false)) } }

    /// The credential to propose for a space: the one that was set last.
    public func credential(for space: ProtectionSpace) -> Credential? { table.credential(for: space) }

    /// All for exactly this space, the one set last first.
    public func credentials(for space: ProtectionSpace) -> [Credential] { table.credentials[space]?.reversed() ?? [] }

    /// Everything, by space.
    public var all: [ProtectionSpace: [Credential]] { table.credentials.mapValues { $0.reversed() } }

    /// Keeps a credential, in place of one of the same user. One that is ``Credential/Persistence/permanent`` goes to
    /// the file; if that cannot be written, or there is none, it stays in memory. One with
    /// ``Credential/Persistence/none`` is not kept.
    /// - Returns: whether it is kept as it wants to be.
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

    /// Removes the credential of the same user, from the file too. No session of this process says it unasked any more.
    public func remove(_ credential: Credential, for space: ProtectionSpace) {
        memory.withLock { $0.remove(credential, for: space) }
        if let file, file.read().credentials[space] != nil { file.change { $0.remove(credential, for: space) } }
        for user in live { user.forget(credential, for: space) }
    }

    /// Removes everything, from the file too. Sessions of this process that use the store forget who they were: they say it no
    /// more until a server asks again. A load under way ends as it began.
    public func removeAll() {
        memory.withLock { $0 = CredentialTable() }
        if let file, !file.read().credentials.isEmpty { file.change { $0 = CredentialTable() } }
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

    /// What went wrong with the file first, for people; `nil` if nothing did, or there is none.
    public var problem: String? { file?.problem }

    /// How many spaces there are, and nothing of them.
    public var description: String {
        "\(table.credentials.count) protection spaces\(file == nil ? "" : ", with a file")"
    }
}

/// Credentials by space, the last set last.
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
            ?? credentials[space.with(.any, realm: nil)]?.last
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
