public import FoundationEssentials
import Synchronization
import URLLoadingIO
public import URLLoadingWire

/// Which servers said that they are to be spoken to over TLS alone (HTTP Strict Transport Security, RFC 6797).
///
/// A request to one of them by `http` becomes one by `https` before anything is sent; and no decision can make a session
/// trust a certificate of theirs that its checks refuse.
///
/// ```swift
/// let store = HSTSStore()
/// configuration.hsts.storage = .store(store)
/// store.requiresTLS(url)
/// ```
/// All calls are synchronous, from any task; a store with a folder keeps `hsts.sqlite` there as ``CookieStore`` keeps its
/// file, and like it may block at the first call. Nothing is known beforehand: there is no list of servers built in.
public final class HSTSStore: Sendable, CustomStringConvertible {
    /// Of this user and this program, beside ``CookieStore/shared``.
    public static let shared = HSTSStore(path: StorageFolders.state)

    private let memory: HSTSMemory
    private let disk: StateDisk<HSTSMemory>?

    /// In memory alone.
    public convenience init() { self.init(path: nil) }

    /// With a file.
    /// - Parameter directory: a `file` URL; made when it is needed.
    public convenience init(directory: URL) { self.init(path: directory.path(percentEncoded: false)) }

    private init(path: String?) {
        memory = HSTSMemory(hasFile: path != nil)
        disk = path.map { [memory] in StateDisk(folder: $0, memory: memory) }
    }

    deinit {
        guard let disk, memory.hasPending else { return }
        BlockingThreads.files.run { disk.write() }
    }

    // MARK: Asking

    /// Whether the host of a URL is known, by itself or by one that it lies below; never for an address.
    public func requiresTLS(_ url: URL) -> Bool {
        guard let target = try? Target(url.absoluteString) else { return false }
        disk?.refresh()
        return requiresTLS(target.origin.host)
    }

    func requiresTLS(_ host: Origin.Host) -> Bool {
        guard mayKnow, let name = host.dnsName else { return false }
        return memory.requiresTLS(name, now: Date.now)
    }

    /// All that are known, by name.
    public var all: [HSTSHost] {
        disk?.load()
        let now = Date.now
        return memory.all.filter { $0.expires > now }
    }

    // MARK: Changing

    /// Notes a host, in place of what was known of it; one that has ended is forgotten.
    public func set(_ host: HSTSHost) {
        disk?.load()
        memory.set(host, now: Date.now)
        changed()
    }

    /// Takes what an answer says, if it came over a secure connection from a host that has a name (RFC 6797 §8.1). That nobody
    /// was made to trust the connection, the caller must know.
    public func set(_ headers: Headers, from url: URL) {
        guard let target = try? Target(url.absoluteString), target.origin.isSecure else { return }
        receive(headers, from: target.origin.host)
    }

    /// Only the first field counts (§8.1).
    func receive(_ headers: Headers, from host: Origin.Host) {
        guard let name = host.dnsName, let field = headers.values(of: .strictTransportSecurity).first,
            let policy = HSTSPolicy(field.utf8)
        else { return }
        let now = Date.now
        let age = min(policy.maximumAge, Self.longestLife)
        set(HSTSHost(checked: name, policy.includesSubdomains, now.addingTimeInterval(Double(age)), creation: now))
    }
    /// A hundred years: what is longer is a number, and no time.
    private static let longestLife: Int64 = 100 * 365 * 86400

    /// Forgets a host; those above and below it stay.
    public func remove(_ name: String) {
        guard let host = try? Origin.Host(name), let plain = host.dnsName else { return }
        disk?.load()
        memory.remove(plain)
        changed()
    }

    /// Forgets what was said at a moment or later; everything by default.
    public func removeAll(since moment: Date = .distantPast) {
        disk?.load()
        memory.removeAll(since: moment)
        changed()
    }

    /// How many hosts are known, and which not.
    public var description: String { "\(memory.count) hosts\(disk == nil ? "" : ", with a file")" }

    // MARK: The file

    /// What went wrong with the file first; `nil` if nothing did, or there is none.
    public var problem: String? { disk?.problem }

    /// Returns when what was set is in the file. Cancelling the calling task does not shorten the wait.
    @concurrent public func flush() async {
        guard let disk else { return }
        _ = await BlockingThreads.files.call(.never) { disk.write() }
    }

    /// Sees at once what other processes have written.
    @concurrent public func reload() async {
        guard let disk else { return }
        _ = await BlockingThreads.files.call(.never) {
            disk.load()
            disk.look()
        }
    }

    private func changed() { if let disk, memory.hasPending { disk.schedule() } }

    var mayKnow: Bool { disk != nil || memory.count > 0 }
    /// Whether it can be asked without a look at a file, and whether it has ever had one.
    var isReady: Bool { disk?.isFresh ?? true }
    var isLoaded: Bool { disk?.isLoaded ?? true }

    /// Reads the file, where a load can wait for it.
    func load(for load: LoadHandle) async {
        guard let disk else { return }
        _ = await BlockingThreads.files.call(load) { disk.refresh() }
    }
}
