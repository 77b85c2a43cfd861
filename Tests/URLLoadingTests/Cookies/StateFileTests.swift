// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@testable import URLLoading

/// Security 81: cookie files are readable by this user only, and a process that locked one for a while causes no loss.
@Suite(.timeLimit(.minutes(4)))
struct StateFileTests {
    private func withFolder(_ use: (URL, String) async throws -> Void) async throws {
        let folder = try makeTemporaryFolder("state")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await use(folder, folder.plainPath + "cookies.sqlite")
    }

    private func cookie(_ name: String) throws -> Cookie {
        try #require(Cookie(name: name, value: "topsecret", domain: "a.test", expires: .now.addingTimeInterval(1000)))
    }

    /// A store that has written one cookie.
    private func stored(in folder: URL) async throws -> CookieStore {
        let store = CookieStore(directory: folder)
        store.set(try cookie("a"))
        await store.flush()
        return store
    }

    @Test("a folder that others may write to is not used")
    func folder() async throws {
        try await withFolder { folder, path in
            chmod(folder.plainPath, 0o777)
            let store = try await stored(in: folder)
            #expect(store.problem != nil && store.all.count == 1)
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test("a link is not used, and a file that others could read becomes private", arguments: [true, false])
    func files(_ isLink: Bool) async throws {
        try await withFolder { folder, path in
            let target = isLink ? folder.plainPath + "elsewhere" : path
            _ = FileManager.default.createFile(atPath: target, contents: nil, attributes: nil)
            chmod(target, 0o644)
            if isLink { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target) }
            let store = try await stored(in: folder)
            var info = stat()
            stat(target, &info)
            if isLink {
                #expect(store.problem != nil && info.st_size == 0)
            } else {
                #expect(info.st_mode & 0o077 == 0 && info.st_size > 0)
            }
        }
    }

    @Test("a removal delayed by another process is written when possible")
    func busy() async throws {
        try await withFolder { folder, path in
            let store = try await stored(in: folder)
            let holder = try Database(path: path)
            try holder.execute("BEGIN IMMEDIATE")
            store.removeAll()
            await store.flush()
            #expect(store.all.isEmpty)
            try holder.execute("COMMIT")
            // The store retries by itself, in the file.
            try await eventually(CookieStore(directory: folder).all) { $0.isEmpty }
            withExtendedLifetime(store) {}
        }
    }

    @Test("a flush beside another one returns when the changes are in the file, which the other is writing")
    func twoFlushes() async throws {
        try await withFolder { folder, path in
            let store = try await stored(in: folder)
            for _ in 0..<5 {
                store.set(try cookie("b"))
                let holder = try Database(path: path)
                try holder.execute("BEGIN IMMEDIATE")
                let began = ContinuousClock.now
                let flushes = (0..<2).map { _ in
                    Task {
                        await store.flush()
                        return ContinuousClock.now
                    }
                }
                try await Task.sleep(for: .milliseconds(100))
                let freed = ContinuousClock.now
                try holder.execute("COMMIT")
                let ends = [await flushes[0].value, await flushes[1].value]
                // A machine that stood still: a writer gives up after two seconds.
                guard began.duration(to: .now) < .seconds(1) else { continue }
                #expect(ends.allSatisfy { $0 > freed })
                #expect(CookieStore(directory: folder).all.count == 2)
                return
            }
        }
    }

    @Test("no decision may trust a server that fails its checks while the file of HSTS hosts could not be read")
    func unread() async throws {
        try await withFolder { folder, _ in
            let path = folder.plainPath + "hsts.sqlite"
            #expect(FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]))
            // As another process that makes the table.
            var lock = try? FileLock(path + ".lock", timeout: 60_000)
            let store = HSTSStore(directory: folder)
            let rules = StrictTransportRules(store: store, isOwn: false, allowsUntrustedCertificates: false)
            let handle = LoadHandle(idle: nil, resource: nil)
            let isForbidden = await rules.forbidsTrust(in: "a.test", handle)
            #expect(isForbidden && !store.isKnown && lock != nil)
            lock = nil
            await store.reload()
            let isStillForbidden = await rules.forbidsTrust(in: "a.test", handle)
            #expect(!isStillForbidden && store.isKnown && store.problem == nil)
        }
    }

    /// A file of HSTS hosts that no connection has open; returns its path.
    private func makeHosts(in folder: URL) throws -> String {
        let path = folder.plainPath + "hsts.sqlite"
        try Database(path: path).execute(HSTSSchema.table.text)
        chmod(path, 0o600)
        return path
    }

    @Test("a file of HSTS hosts that cannot be read is not taken for an empty one")
    func unreadable() async throws {
        try await withFolder { folder, _ in
            let log = try makeHosts(in: folder) + "-wal"
            // SQLite cannot open it.
            try FileManager.default.createDirectory(atPath: log, withIntermediateDirectories: false)
            for isReadable in [false, true] {
                if isReadable { try FileManager.default.removeItem(atPath: log) }
                let store = HSTSStore(directory: folder)
                let rules = StrictTransportRules(store: store, isOwn: false, allowsUntrustedCertificates: false)
                let isForbidden = await rules.forbidsTrust(in: "a.test", LoadHandle(idle: nil, resource: nil))
                #expect(isForbidden == !isReadable && store.isKnown == isReadable)
                #expect((store.problem == nil) == isReadable)
            }
        }
    }

    @Test("a disk or a file server that does not answer is no reason to give the file up", arguments: [EIO, ESTALE])
    func unanswered(_ number: Int32) {
        #expect(DatabaseFailure(lock: IOFailure(.system(number), .open)).kind == .busy)
    }

    /// Does not take the rows of its file before the test allows it, as a file server that does not answer.
    private final class StuckMemory: StateMemory {
        typealias Schema = HSTSSchema
        let isInside = Flag()
        let mayLeave = Flag()
        let hasPending = true
        func takePending() -> Pending { Pending() }
        func restore(_ pending: Pending) {}
        func rememberAll() {}
        func replace(with rows: [HSTSHost]) {
            isInside.raise()
            mayLeave.waitBlocking()
        }
    }

    @Test("while a check of the file hangs, no other check and no write occupies a thread")
    func oneThread() async throws {
        try await withFolder { folder, _ in
            _ = try makeHosts(in: folder)
            let (clock, memory) = (ManualClock(), StuckMemory())
            let disk = StateDisk(folder: folder.plainPath, memory: memory, clock: LoopClock(clock.time))
            let threads = BlockingThreads(limit: 2)
            let (hasEnded, hasLeft) = (Flag(), Flag())
            defer { memory.mayLeave.raise() }
            threads.run {
                disk.check()
                hasEnded.raise()
            }
            try await memory.isInside.wait { $0 }
            threads.run {
                disk.check()
                hasLeft.raise()
            }
            try await hasLeft.wait { $0 }
            disk.schedule()
            clock.advance(by: .seconds(1))
            // The write is due, and put off.
            try await clock.time.eventuallyTimers { $0 > 0 }
            #expect(!hasEnded.value)
            memory.mayLeave.raise()
            try await hasEnded.wait { $0 }
            disk.write()
        }
    }

    @Test("a removal of what the file does not have is no write: it needs no lock, and no load checks the file for it")
    func idleRemovals() async throws {
        try await withFolder { folder, _ in
            let path = try makeHosts(in: folder)
            let (clock, memory) = (ManualClock(), TableMemory(HSTSTable(), hasFile: true) {})
            let disk = StateDisk(folder: folder.plainPath, memory: memory, clock: LoopClock(clock.time))
            disk.load()
            // As another process that writes.
            var lock: FileLock? = try FileLock(path + ".lock", timeout: 60_000)
            _ = memory.change { $0.remove("a.test") }
            disk.write()
            #expect(disk.isFresh && !memory.hasPending && disk.problem == nil && lock != nil)
            lock = nil
            let host = try #require(HSTSHost("a.test", expires: .now + 1000))
            _ = memory.change { $0.set(host, now: .now) }
            disk.write()
            #expect(!disk.isFresh && HSTSStore(directory: folder).all.map(\.name) == ["a.test"])
            _ = memory.change { $0.remove("a.test") }
            disk.write()
            #expect(HSTSStore(directory: folder).all.isEmpty)
        }
    }

    @Test("a table that was read is used without its file while file access hangs")
    func hanging() async throws {
        try await withFolder { folder, _ in
            let clock = ManualClock()
            let threads = BlockingThreads(limit: 1)
            let store = PersistedStore(CookieTable(), folder: folder.plainPath, threads: threads)
            let handle = LoadHandle(idle: nil, resource: nil, clock: LoopClock(clock.time))
            await store.refresh(for: handle)
            // By the system's time.
            try await eventually(store.isFresh) { !$0 }
            let release = DispatchSemaphore(value: 0)
            threads.run { release.wait() }
            let refreshed = Task { await store.refresh(for: handle) }
            try await clock.time.eventuallyTimers { $0 > 0 }
            clock.advance(by: .seconds(1))
            await refreshed.value
            release.signal()
        }
    }

    @Test("a file that was deleted externally is created again")
    func gone() async throws {
        try await withFolder { folder, path in
            let store = try await stored(in: folder)
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            store.set(try cookie("b"))
            await store.flush()
            #expect(CookieStore(directory: folder).all.count == 2)
        }
    }

    @Test("expired cookies are removed from the file, even if no cookie is set")
    func ended() async throws {
        try await withFolder { folder, path in
            _ = try await stored(in: folder)
            let database = try Database(path: path)
            try database.execute("UPDATE cookie SET expires = 1")
            #expect(CookieStore(directory: folder).all.isEmpty)
            var count: Int64 = -1
            let statement = try database.statement("SELECT count(*) FROM cookie")
            try statement.each { () throws(DatabaseFailure) in
                count = statement.integer(0)
                return false
            }
            #expect(count == 0)
        }
    }

    @Test(
        "a file whose table is missing or foreign is repaired",
        arguments: [
            ["DROP TABLE cookie"], ["ALTER TABLE cookie ADD COLUMN other TEXT NOT NULL DEFAULT ''"],
            ["DROP TABLE cookie", "CREATE TABLE cookie (word TEXT)"],
        ] as [[StaticString]], [false, true])
    func schema(_ changes: [StaticString], isOpen: Bool) async throws {
        try await withFolder { folder, path in
            let store = try await stored(in: folder)
            do {
                let database = try Database(path: path)
                for change in changes { try database.execute(change) }
            }
            let user = isOpen ? store : CookieStore(directory: folder)
            user.set(try cookie("b"))
            // The first write discovers the damage.
            await user.flush()
            await user.flush()
            #expect(CookieStore(directory: folder).all.map(\.name).contains("b"))
            withExtendedLifetime(store) {}
        }
    }
}
