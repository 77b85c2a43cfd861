// As whom a control connection was opened, and how it is secured: it serves nobody else (security 62).

struct FTPKey: Hashable, Sendable {
    /// One reference, for routes are passed around by all loads and have one of these hardly ever.
    private let storage: Storage

    private final class Storage: Sendable {
        let user: String
        let password: String
        let account: String?
        let security: Configuration.FTP.Security
        init(_ user: String, _ password: String, _ account: String?, _ security: Configuration.FTP.Security) {
            (self.user, self.password, self.account, self.security) = (user, password, account, security)
        }
    }

    init(_ credential: Credential, _ settings: Configuration.FTP) {
        storage = Storage(credential.user, credential.password, settings.account, settings.security)
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
