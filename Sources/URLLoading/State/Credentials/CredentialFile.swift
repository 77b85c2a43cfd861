// SPDX-License-Identifier: Apache-2.0

// The permanent part of a `CredentialStore`: one JSON file. Each call reads it; changes are made under a lock that
// other processes respect, and replace the file atomically.

import FoundationEssentials
import Glibc
import Synchronization
import URLLoadingIO

final class CredentialFile: Sendable {
    private let path: String
    private var folder: String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "." }
    private let firstProblem = Lock<String?>(nil)
    /// What the file must still lose: another process held its lock, or it could not be read.
    private let removals = Lock<Set<CredentialRemoval>>([])

    init(_ path: String) { self.path = path }

    /// The first failure; `nil` if there was none.
    var problem: String? { firstProblem.withLock { $0 } }
    private func report(_ words: String) { firstProblem.withLock { $0 = $0 ?? "\(path): \(words)" } }

    static var standardURL: URL {
        URL(filePath: StorageFolders.state + "/credentials.json")
    }

    private struct Record: Codable {
        var host: String
        var port: Int
        var scheme: String
        var realm: String?
        var method: String
        var isProxy: Bool
        var user: String
        var password: String
        var token: String?
    }
    /// The largest file that is read, far more than a user needs.
    private static let maximumBytes: Int64 = 4 << 20
    /// Milliseconds to wait for another process that changes the file.
    static let lockTimeout = 2_000

    private enum Content {
        case table(CredentialTable)
        /// A file of the store that cannot be decoded.
        case damaged
        /// The file or its folder is writable by other users, the file is too large, or it cannot be read: it is left
        /// unchanged.
        case foreign
    }

    /// Reads the table, without what could not be removed yet. A file that is missing, untrusted or damaged counts as
    /// empty.
    func read() -> CredentialTable {
        _ = finishRemovals(timeout: 0)
        // Before the content, which another thread may free of them meanwhile.
        let due = removals.withLock { $0 }
        guard case .table(var table) = content() else { return CredentialTable() }
        for removal in due { removal.apply(to: &table) }
        return table
    }

    /// Removes from the file: now, or with the next access to it and at the latest when the process exits.
    func remove(_ removal: CredentialRemoval) {
        switch content() {
        case .table(let table): guard removal.concerns(table) else { return }
        case .damaged: return
        case .foreign: break
        }
        removals.withLock { _ = $0.insert(removal) }
        if finishRemovals(timeout: Self.lockTimeout) { return }
        StateExit.add(ObjectIdentifier(self)) { _ = self.finishRemovals(timeout: Self.lockTimeout) }
    }

    /// Returns whether nothing is left to be removed.
    private func finishRemovals(timeout: Int) -> Bool {
        removals.withLock { $0.isEmpty } || change(timeout: timeout) { _ in }
    }

    private func content() -> Content {
        let file: FileWriter
        let size: Int64
        do throws(IOFailure) {
            guard try PrivateFolder.isUsable(folder) else { return .table(CredentialTable()) }
            (file, size) = try FileWriter.reopen(path)
        } catch {
            if case .system(ENOENT) = error.code { return .table(CredentialTable()) }
            report(
                error.isForeign
                    ? "the file or its folder is not private to this user" : "the file cannot be read: \(error.words)")
            return .foreign
        }
        guard size <= Self.maximumBytes else {
            report("the file is too large")
            return .foreign
        }
        var bytes = [UInt8](repeating: 0, count: Int(size))
        guard let count = bytes.withUnsafeMutableBytes({ room in try? file.read(into: room, at: 0) }) else {
            return .foreign
        }
        guard let records = try? JSONDecoder().decode([Record].self, from: Data(bytes[..<count])) else {
            return .damaged
        }
        var table = CredentialTable()
        for record in records {
            let space = ProtectionSpace(
                host: record.host, port: record.port, scheme: record.scheme, realm: record.realm,
                method: Challenge.Method(record.method), isProxy: record.isProxy)
            let credential =
                record.token.map { Credential.bearer($0, persistence: .permanent) }
                ?? Credential(user: record.user, password: record.password, persistence: .permanent)
            table.set(credential, for: space)
        }
        return .table(table)
    }

    /// Returns whether the file was written. A file that cannot be read is not overwritten, because it may belong to
    /// another user.
    func change(timeout: Int = CredentialFile.lockTimeout, _ change: (inout CredentialTable) -> Void) -> Bool {
        do throws(IOFailure) { try PrivateFolder.make(folder) } catch {
            report(
                error.isForeign
                    ? "its folder is not private to this user" : "its folder cannot be created: \(error.words)")
            return false
        }
        let lock: FileLock
        do throws(IOFailure) { lock = try FileLock(path + ".lock", timeout: timeout) } catch {
            report(
                error.isTemporary
                    ? "another process holds the file's lock" : "the file cannot be locked: \(error.words)")
            return false
        }
        defer { withExtendedLifetime(lock) {} }
        var content = content()
        if case .damaged = content {
            PrivateFolder.rename(path, path + ".damaged")
            content = self.content()
        }
        guard case .table(var table) = content else { return false }
        let due = removals.withLock { $0 }
        for removal in due { removal.apply(to: &table) }
        change(&table)
        do { try write(table, in: folder) } catch {
            // An error of the encoder could quote a secret.
            report("the file cannot be written" + ((error as? IOFailure).map { ": \($0.words)" } ?? ""))
            return false
        }
        let isDone = removals.withLock { removals in
            removals.subtract(due)
            return removals.isEmpty
        }
        if isDone { StateExit.remove(ObjectIdentifier(self)) }
        return true
    }

    private func write(_ table: CredentialTable, in folder: String) throws {
        let records = table.credentials.sorted { "\($0.key)" < "\($1.key)" }.flatMap { space, credentials in
            credentials.map { credential in
                Record(
                    host: space.host, port: space.port, scheme: space.scheme, realm: space.realm,
                    method: space.method.name,
                    isProxy: space.isProxy, user: credential.user, password: credential.password,
                    token: credential.token)
            }
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
        let data = try encoder.encode(records)
        // A larger file would not be read again.
        guard data.count <= Self.maximumBytes else { throw IOFailure(.system(EFBIG), .write) }
        let file = try FileWriter.create(in: folder, prefix: ".credentials-")
        try Array(data).withUnsafeBytes { bytes in try file.write(bytes, at: 0) }
        try file.synchronize()
        try file.move(from: file.path, to: path, replacing: true, synchronizes: true)
    }
}

/// What is to be removed from a file of credentials.
enum CredentialRemoval: Hashable, Sendable {
    case one(Credential, ProtectionSpace)
    case all

    func concerns(_ table: CredentialTable) -> Bool {
        switch self {
        case .one(_, let space): table.credentials[space] != nil
        case .all: !table.credentials.isEmpty
        }
    }

    func apply(to table: inout CredentialTable) {
        switch self {
        case .one(let credential, let space): table.remove(credential, for: space)
        case .all: table = CredentialTable()
        }
    }
}
