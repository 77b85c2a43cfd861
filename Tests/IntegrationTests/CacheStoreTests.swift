// SPDX-License-Identifier: Apache-2.0

// The disk of a cache, used by processes that are killed, and by several processes at once.

import FoundationEssentials
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(60)), .serialized)
struct CacheStoreTests {
    private static let isLong = getenv("URLLOADING_LONG") != nil

    private func expected(_ number: Int) -> Data {
        let size = [100, 5_000, 40_000, 300_000][number % 4]
        return Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
    }

    private func request(_ number: Int, _ prefix: String = "http://exercise.test/") -> Request {
        Request(url: URL(string: "\(prefix)\(number)") ?? URL(filePath: "/"))
    }

    /// Returns which of the stored responses are present; their content must be right.
    private func check(_ cache: ResponseCache, _ count: Int, _ prefix: String = "http://exercise.test/") -> Set<Int> {
        var there: Set<Int> = []
        for number in 0..<count {
            guard let found = cache.cachedResponse(for: request(number, prefix)) else { continue }
            let isRight = found.data == expected(number) && found.response.http?.headers["X-Number"] == "\(number)"
            #expect(isRight, "\(prefix)\(number)")
            there.insert(number)
        }
        return there
    }

    @Test("After a kill at any moment all durable responses are present, and all present ones are right")
    func killed() async throws {
        let rounds = Self.isLong ? 700 : 5
        let count = 400
        let folder = try TemporaryFolder()
        var killed = 0
        var random = SeededGenerator(seed: 1)
        for round in 0..<rounds {
            let directory = folder.path + "/\(round)"
            let child = try Running(
                Running.urlloadPath, ["cache", "exercise", "--cache", directory, "--count", "\(count)"])
            try await Task.sleep(for: .milliseconds(Int.random(in: 5...300, using: &random)))
            child.send(SIGKILL)
            let result = try await child.wait()
            killed += result.code == SIGKILL ? 1 : 0
            // An incomplete line counts for nothing.
            let safe =
                result.text.hasSuffix("\n") ? result.text.split(separator: "\n").last.flatMap { Int($0) } ?? -1 : -1
            let cache = ResponseCache(directory: URL(filePath: directory))
            let there = check(cache, min(count, safe + 40))
            if safe >= 0 {
                #expect(Set(0...safe).subtracting(there).isEmpty, "seed 1, round \(round), safe up to \(safe)")
            }
            #expect(cache.problem == nil)
            // No orphaned files remain.
            cache.flush()
            try? FileManager.default.removeItem(atPath: directory)
        }
        #expect(killed > 0)
    }

    private static let hasStrace = access("/usr/bin/strace", X_OK) == 0

    @Test(
        "After a kill at any change of a file, while responses are replaced, all durable responses are right",
        .enabled(if: CacheStoreTests.hasStrace, "needs strace"))
    func killedAtCalls() async throws {
        let folder = try TemporaryFolder()
        let count = 40
        let calls = "pwrite64,ftruncate,unlink,unlinkat,fallocate,fsync,fdatasync,flock,rename,renameat2"
        var killed = 0
        for number in stride(from: 1, to: Self.isLong ? 600 : 120, by: Self.isLong ? 2 : 17) {
            let directory = folder.path + "/\(number)"
            let words = ["cache", "exercise", "--cache", directory, "--count", "\(count)"]
            let first = try await Running.urlload(words)
            #expect(first.code == 0, "\(first.errors)")
            let result = try await Running.command(
                "/usr/bin/strace",
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "inject=\(calls):signal=SIGKILL:when=\(number)",
                    Running.urlloadPath,
                ]
                    + words)
            killed += result.code == 0 ? 0 : 1
            // The second run stores what the first has stored: each response is the old one or the new one.
            let cache = ResponseCache(directory: URL(filePath: directory))
            let there = check(cache, count)
            #expect(there == Set(0..<count) && cache.problem == nil, "call \(number): \(there.count)")
            cache.flush()
            let again = try await Running.urlload(words)
            #expect(again.code == 0 && check(cache, count).count == count, "call \(number): \(again.errors)")
            try? FileManager.default.removeItem(atPath: directory)
            if result.code == 0 { break }
        }
        #expect(killed > 0)
    }

    @Test("Two processes read and write one store at once")
    func together() async throws {
        let folder = try TemporaryFolder()
        let count = 200
        let children = try ["http://a.test/", "http://b.test/"].map {
            try Running(
                Running.urlloadPath, ["cache", "exercise", "--cache", folder.path + "/c", "--count", "\(count)", $0])
        }
        let cache = ResponseCache(directory: URL(filePath: folder.path + "/c"))
        for _ in 0..<20 {
            _ = check(cache, 20, "http://a.test/")
            try await Task.sleep(for: .milliseconds(20))
        }
        for child in children {
            let result = try await child.wait()
            #expect(result.code == 0, "\(result.errors)")
        }
        try await Task.sleep(for: .milliseconds(110))
        for prefix in ["http://a.test/", "http://b.test/"] {
            let there = check(cache, count, prefix)
            #expect(there.count >= count * 9 / 10, "\(prefix): \(there.count) of \(count)")
        }
        #expect(cache.problem == nil && cache.diskUsage > 0)
        // A response that another process removed is not found.
        let removal = try await Running.urlload(["cache", "rm", "--cache", folder.path + "/c", "--all"])
        #expect(removal.code == 0, "\(removal.errors)")
        try await Task.sleep(for: .milliseconds(110))
        _ = cache.cachedResponse(for: request(count + 1, "http://a.test/"))
        #expect(check(cache, count, "http://a.test/").isEmpty)
    }

    @Test("A full disk costs stored responses but no load, and is reported")
    func full() async throws {
        let folder = try TemporaryFolder()
        // The limit of a file's size stands for a full disk; its signal is ignored, as servers do. It leaves room for a
        // file that the thread sanitizer writes when a program starts.
        let script = #"trap '' XFSZ; ulimit -f 512; exec "$0" cache exercise --cache "$1/c" --count 600"#
        let result = try await Running.command("/bin/bash", ["-c", script, Running.urlloadPath, folder.path])
        #expect(result.code == 23 && result.errors.contains("full"), "\(result.code) \(result.errors)")
        let cache = ResponseCache(directory: URL(filePath: folder.path + "/c"))
        _ = check(cache, 300)
        #expect(cache.problem == nil)
    }

    @Test("The command lists, shows and removes stored responses")
    func command() async throws {
        let folder = try TemporaryFolder()
        func run(_ words: String...) async throws -> Running.Result {
            try await Running.urlload(["cache"] + words + ["--cache", folder.path + "/c"])
        }
        func count() async throws -> Int { try await run("ls").text.split(separator: "\n").count }
        let before = try await count()
        #expect(before == 0)
        _ = try await run("exercise", "--count", "4")
        let list = try await run("ls")
        let lines = list.text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        #expect(
            lines.map { [$0[0], $0[1], $0[3], $0[4]] } == [
                ["200", "100B", "pack", "http://exercise.test/0"], ["200", "4.9K", "pack", "http://exercise.test/1"],
                ["200", "39K", "file", "http://exercise.test/2"], ["200", "293K", "file", "http://exercise.test/3"],
            ], "\(list.text)\(list.errors)")
        let json = try await run("ls", "--json", "http://exercise.test/1")
        #expect(
            json.text.hasPrefix(
                "{\"url\":\"http://exercise.test/1\",\"status\":200,\"bytes\":5000,\"whole\":true,\"age\":"))
        let show = try await run("show", "http://exercise.test/0")
        #expect(show.output == Array("HTTP/1.1 200 OK\r\nX-Number: 0\r\n\r\n".utf8) + expected(0))
        let why = try await run("why", "http://exercise.test/0", "http://exercise.test/9")
        #expect(why.text.hasPrefix("http://exercise.test/0: network ("), "\(why.text)\(why.errors)")
        #expect(why.text.hasSuffix("http://exercise.test/9: network (nothing stored)\n"), "\(why.text)")
        let none = try await run("show", "http://exercise.test/9")
        #expect(none.code == 22)
        for (words, left) in [
            (["http://exercise.test/0"], 3), (["--older", "1000"], 3), (["http://exercise.test/*"], 0),
        ] {
            let removal = try await Running.urlload(["cache", "rm"] + words + ["--cache", folder.path + "/c"])
            let rest = try await count()
            #expect(removal.code == 0 && rest == left, "\(words) \(removal.errors)")
        }
        for wrong in [["ls"], ["why"], ["rm", "--all", "x", "--cache", "c"], ["show", "--cache", "c"]] {
            let result = try await Running.urlload(["cache"] + wrong)
            #expect(result.code == 2, "\(wrong)")
        }
        let help = try await Running.urlload(["cache", "--help"])
        #expect(help.text.hasPrefix("urlload cache ls"))
    }

    @Test(
        "A working set of 2 GiB through 256 MiB of disk keeps the capacity, and the responses in use",
        .enabled(if: CacheStoreTests.isLong, "URLLOADING_LONG"))
    func workingSet() async throws {
        let folder = try TemporaryFolder()
        let directory = URL(filePath: folder.path + "/c")
        let capacity = 256 << 20
        let cache = ResponseCache(memoryCapacity: 4 << 20, diskCapacity: Int64(capacity), directory: directory)
        let block = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        let hot = request(0)
        func store(_ number: Int, _ size: Int) {
            let response = Response(
                url: request(number).url, http: HTTPHead(status: .ok, headers: ["X-Number": "\(number)"]))
            cache.store(CachedResponse(response: response, data: block.prefix(size)), for: request(number))
        }
        store(0, 1_000)
        let began = ContinuousClock.now
        let cpu = Self.cpu()
        var total = 0
        var number = 0
        var most = 0
        var found = 0
        while total < 2 << 30 {
            number += 1
            let size = [1_000, 8_000, 60_000, 300_000, 1_000_000][number % 5]
            store(number, size)
            total += size
            if cache.cachedResponse(for: hot)?.data.count == 1_000 { found += 1 }
            if number % 500 == 0 { most = max(most, usage(folder.path + "/c")) }
        }
        cache.flush()
        most = max(most, usage(folder.path + "/c"))
        let took = began.duration(to: .now)
        print(
            "2 GiB in \(number) entries through 256 MiB: \(took), "
                + "\(Self.cpu() - cpu) s of CPU, at most \(most >> 20) MiB on disk"
        )
        #expect(cache.diskUsage <= Int64(capacity) && most < capacity * 11 / 10 + (40 << 20))
        #expect(found == number, "the one that is used was lost \(number - found) times")
        // The newest responses are present, the oldest are gone.
        let newest = (0..<100).filter { cache.cachedResponse(for: request(number - $0)) != nil }.count
        #expect(newest == 100 && cache.cachedResponse(for: request(1)) == nil && cache.problem == nil)
    }

    private func usage(_ path: String) -> Int {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
        return names.reduce(0) { total, name in
            var info = stat()
            return lstat(path + "/" + name, &info) == 0 ? total + Int(info.st_blocks) * 512 : total
        }
    }

    /// The processor time of this process, in seconds.
    private static func cpu() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + Double(
            usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }
}
