// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import URLLoadingIO
public import URLLoadingWire

/// The servers that demand TLS (HTTP Strict Transport Security, RFC 6797).
///
/// A request to one of them by `http` is changed to `https` before it is sent, and no decision can trust a certificate
/// of theirs that fails its checks.
///
/// ```swift
/// let store = HSTSStore()
/// configuration.hsts.storage = .store(store)
/// store.requiresTLS(url)
/// ```
/// All calls are synchronous and may be made from any task. A store with a directory keeps `hsts.sqlite` there as
/// ``CookieStore`` keeps its file, and may block at the first call. There is no built-in (preload) list of servers.
///
/// In builds with HTTP/3 a store also keeps where servers offer it (Alt-Svc, RFC 7838), with a directory in
/// `alternatives.sqlite`; ``removeAll(since:)``, ``flush()``, ``reload()`` and ``problem`` include that.
public final class HSTSStore: Sendable, CustomStringConvertible {
    /// The store of this user and this program, beside ``CookieStore/shared``.
    public static let shared = HSTSStore(path: StorageFolders.state)

    private let table: PersistedStore<HSTSTable>
    /// Where servers offer HTTP/3.
    let alternatives: AlternativeServiceStore

    /// Makes a store in memory only.
    public convenience init() { self.init(path: nil) }

    /// Makes a store with a file.
    /// - Parameter directory: a `file` URL; created when it is needed.
    public convenience init(directory: URL) { self.init(path: directory.path(percentEncoded: false)) }

    private init(path: String?) {
        table = PersistedStore(HSTSTable(), folder: path)
        alternatives = AlternativeServiceStore(folder: path)
    }

    // MARK: Lookup

    /// Returns whether the host of a URL is known, itself or through a parent domain; never for an address.
    public func requiresTLS(_ url: URL) -> Bool {
        guard let target = try? Target(url.absoluteString) else { return false }
        table.refresh()
        return requiresTLS(target.origin.host)
    }

    func requiresTLS(_ host: Origin.Host) -> Bool {
        guard mayContainHosts, let name = host.dnsName else { return false }
        let now = Date.now
        return table.count > 0 && table.read { $0.requiresTLS(name, now: now) }
    }

    /// All known hosts, sorted by name.
    public var all: [HSTSHost] {
        table.load()
        let now = Date.now
        return table.read(\.persistentRows).filter { !$0.isExpired(now) }.sorted { $0.name < $1.name }
    }

    // MARK: Changes

    /// Stores a host, replacing its earlier entry; an expired one removes it.
    public func set(_ host: HSTSHost) {
        let now = Date.now
        table.change { $0.set(host, now: now) }
    }

    /// Takes the policy of a response, if its URL is secure and its host has a name (RFC 6797 §8.1). The caller must
    /// make sure that the server's certificate passed its checks and was not accepted by a decision.
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
        let entry = HSTSHost(
            checked: name, includesSubdomains: policy.includesSubdomains,
            expires: now.addingTimeInterval(Double(age)), creation: now)
        // Without reading the file, which may take long: this is the task of a load, perhaps on the event loop.
        table.changeMemory { $0.set(entry, now: now) }
    }
    /// The longest lifetime: a hundred years.
    private static let longestLife: Int64 = 100 * 365 * 86400

    /// Removes a host; its subdomains and parent domains stay.
    public func remove(_ name: String) {
        guard let host = try? Origin.Host(name), let plain = host.dnsName else { return }
        table.change { $0.remove(plain) }
    }

    /// Removes the entries that were set at a moment or later; all by default.
    public func removeAll(since moment: Date = .distantPast) {
        table.change { $0.removeAll(since: moment) }
        alternatives.removeAll(since: moment)
    }

    /// The number of known hosts, without their names.
    public var description: String { "\(table.count) hosts\(table.hasFile ? ", with a file" : "")" }

    // MARK: The file

    /// A description of the first failure with the file; `nil` without a failure or without a file.
    public var problem: String? { table.problem ?? alternatives.problem }

    /// Returns when all earlier changes are in the file. Cancelling the calling task does not shorten the wait.
    @concurrent public func flush() async {
        await table.flush()
        await alternatives.flush()
    }

    /// Reads the changes of other processes now.
    @concurrent public func reload() async {
        await table.reload()
        await alternatives.reload()
    }

    var mayContainHosts: Bool { table.hasFile || table.count > 0 }
    /// Whether the store can be asked without reading the file, and whether that has been read before.
    var isReady: Bool { table.isFresh }
    var isKnown: Bool { table.isKnown }

    /// Reads the file on a thread that may block.
    func load(for load: LoadHandle) async { await table.refresh(for: load) }
}
