// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// What a store takes of memory, of the disk and of the threads that may block is limited, and a disk that was full is
/// used again.
@Suite(.timeLimit(.minutes(4))) struct StoreLimitTests {
    private func open(_ folder: URL, capacity: Int64 = 64 << 20) -> DiskStorage {
        let path = folder.plainPath
        return DiskStorage(
            path.hasSuffix("/") ? String(path.dropLast()) : path, capacity: capacity, maximumEntry: capacity / 4)
    }

    private func key(_ name: String) -> CacheKey { CacheKey(text: "https://a.test/" + name) }

    /// Lets the next look-up ask the database.
    private func age(_ storage: DiskStorage) {
        storage.state.withLock { ($0.lastCheck, $0.lastLongCheck) = (.min / 2, .min / 2) }
    }

    // MARK: Memory

    @Test("the keys that other processes have removed again are forgotten", arguments: [false, true])
    func keys(stores: Bool) {
        withStoreFolder { folder in
            let (reader, writer) = (open(folder), open(folder, capacity: 256 << 10))
            var most = 0
            for round in 0..<20 {
                for number in 0..<500 { writer.store("n\(round)-\(number)", 100) }
                writer.flush()
                age(reader)
                if stores {
                    reader.store("own\(round)", 10)
                    reader.flush()
                } else {
                    _ = reader.variants(key("none"))
                }
                most = max(most, reader.state.withLock { $0.keys.count })
            }
            #expect(most < 5_000, "\(most)")
            for number in 490..<500 { #expect(reader.isRight("n19-\(number)", 100)) }
            #expect(reader.variantsNow(key("none"))?.isEmpty != false)
        }
    }

    @Test("a key of another process is found when the count of changes begins anew")
    func counts() throws {
        try withStoreFolder { folder in
            let reader = open(folder)
            for number in 0..<10 {
                reader.store("n\(number)", 10)
                reader.settle()
            }
            reader.flush()
            try Database(path: folder.appending(path: "cache.sqlite").plainPath)
                .execute("DELETE FROM state; INSERT INTO state VALUES (1, 0, 0)")
            let writer = open(folder)
            writer.store("new", 10)
            writer.flush()
            age(reader)
            #expect(reader.variants(key("none")).isEmpty)
            #expect(reader.variantsNow(key("new"))?.isEmpty != true)
            #expect(reader.isRight("new", 10))
        }
    }

    // MARK: Room

    @Test("renewed heads count")
    func heads() {
        withStoreFolder { folder in
            let storage = open(folder)
            for number in 0..<300 { storage.store("n\(number)", 100) }
            storage.flush()
            let before = storage.usage
            func renew() {
                for number in 0..<300 {
                    guard var response = storage.variants(key("n\(number)")).first else { continue }
                    response.headers = ["X-Large": String(repeating: "x", count: 20_000)]
                    storage.update(response)
                }
                storage.flush()
            }
            renew()
            let after = storage.usage
            #expect(after > before + 300 * 20_000 && after < before + 300 * 30_000, "\(before) \(after)")
            renew()
            #expect(storage.usage == after && open(folder).usage == after)
            storage.set(capacity: 2 << 20, maximumEntry: 1 << 20)
            storage.flush()
            #expect(storage.usage <= 2 << 20)
        }
    }

    private static func mountDisk(_ path: String, _ size: String, _ flags: UInt = 0) -> Bool {
        mount("tmpfs", path, "tmpfs", flags, "size=\(size),mode=0700") == 0
    }

    private static let canMount: Bool = {
        guard let folder = try? TemporaryFolder(), mountDisk(folder.path, "1m") else { return false }
        return umount2(folder.path, Int32(MNT_DETACH)) == 0
    }()

    private func withSmallDisk(_ use: (URL, (Bool) -> Void) throws -> Void) throws {
        let folder = try TemporaryFolder()
        try #require(Self.mountDisk(folder.path, "1m"))
        defer { umount2(folder.path, Int32(MNT_DETACH)) }
        let filler = folder.path + "/filler"
        try use(URL(filePath: folder.path + "/cache", directoryHint: .isDirectory)) { isFull in
            if !isFull { return PrivateFolder.remove(filler) }
            let descriptor = Glibc.open(filler, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            let page = [UInt8](repeating: 1, count: 4_096)
            while write(descriptor, page, page.count) > 0 {}
            close(descriptor)
        }
    }

    @Test("a disk that is full at first is used when it has room", .enabled(if: StoreLimitTests.canMount))
    func fullAtFirst() throws {
        try withSmallDisk { folder, fill in
            fill(true)
            let storage = open(folder)
            storage.store("x", 1_000)
            storage.flush()
            #expect(storage.problem?.reason == .full && storage.bytes("x") == nil && !storage.takes(10))
            fill(false)
            // The pause is over.
            storage.lane.withLock { $0.resumes = .min }
            storage.store("y", 1_000)
            storage.flush()
            #expect(storage.isRight("y", 1_000) && open(folder).isRight("y", 1_000))
        }
    }

    @Test(
        "a removal for which there is no room is carried out when there is", .enabled(if: StoreLimitTests.canMount))
    func removalWhenFull() throws {
        try withSmallDisk { folder, fill in
            let storage = open(folder)
            storage.store("x", 0)
            storage.flush()
            fill(true)
            storage.removeAll(since: nil)
            for _ in 0..<8 { storage.settle() }
            #expect(storage.bytes("x") == nil)
            fill(false)
            storage.flush()
            storage.lane.withLock { $0.resumes = .min }
            storage.store("y", 1_000)
            storage.flush()
            let next = open(folder)
            #expect(next.bytes("x") == nil && next.isRight("y", 1_000))
        }
    }

    @Test("a folder that was moved while its lock was awaited is no reason to give up")
    func moved() {
        #expect(DatabaseFailure(lock: IOFailure(.system(ENOENT), .open)).kind == .busy)
        #expect(DatabaseFailure(lock: IOFailure(.system(EDQUOT), .open)).kind == .full)
        #expect(DatabaseFailure(lock: IOFailure(.system(EACCES), .open)).kind == .unwritable)
    }

    // MARK: Threads

    @Test("look-ups do not wait again for a lock that another process did not give back", arguments: [false, true])
    func stopped(isOpen: Bool) {
        withStoreFolder { folder in
            let first = open(folder)
            first.store("x", 1_000)
            first.flush()
            let storage = isOpen ? first : open(folder)
            var lock = try? FileLock(folder.appending(path: "cache.lock").plainPath, timeout: 60_000)
            #expect(storage.variants(key("x")).isEmpty && lock != nil)
            let again = storage.state.withLock { state in
                defer { state.opensAgain = .max }
                return state.opensAgain
            }
            #expect(again > .min)
            lock = nil
            // Until then the lock is not asked for.
            #expect(storage.variants(key("x")).isEmpty && !storage.find(key("x")).isAll)
            storage.state.withLock { $0.opensAgain = .min }
            #expect(storage.isRight("x", 1_000))
        }
    }
}
