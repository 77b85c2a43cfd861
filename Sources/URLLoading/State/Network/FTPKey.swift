// SPDX-License-Identifier: Apache-2.0

// The login and the security of a control connection, which serves no other login.

struct FTPKey: Hashable, Sendable {
    /// One reference, because all loads pass routes around and few of them are for ftp.
    private let storage: Storage

    private final class Storage: Sendable {
        let user: String
        let password: String
        let account: String?
        /// The name of the security setting.
        let security: String
        init(_ user: String, _ password: String, _ account: String?, _ security: String) {
            (self.user, self.password, self.account, self.security) = (user, password, account, security)
        }
    }

    /// - Parameter security: the name of the security setting.
    init(_ credential: Credential, account: String?, security: String) {
        storage = Storage(credential.user, credential.password, account, security)
    }

    static func == (a: FTPKey, b: FTPKey) -> Bool {
        let (a, b) = (a.storage, b.storage)
        return a === b
            || a.user == b.user && a.password == b.password && a.account == b.account && a.security == b.security
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(storage.user)
        hasher.combine(storage.password)
    }
}
