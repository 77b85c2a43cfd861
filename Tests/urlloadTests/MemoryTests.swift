// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading

@testable import urlload

/// `--cookies`, `-b`, `-c` and `--hsts`.
struct MemoryTests {
    private func memory(_ words: String...) throws -> Memory {
        try Memory(try ArgumentParser.parse(words + ["http://a.example/", "b.example"]))
    }

    private func withFile(_ use: (String) throws -> Void) throws {
        let path = FileManager.default.temporaryDirectory.path() + "/memory-\(UInt64.random(in: .min ... .max))"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try use(path)
    }

    private func write(_ memory: Memory) throws -> ExitCode {
        memory.write(Screen(try ArgumentParser.parse(["-s", "u"])))
    }

    @Test("Cookies of -b are for the hosts of the command line") func dataGoesToTheHostsOfTheCommandLine() throws {
        let cookies = try memory("-b", "a=1; b = x=y ", "-b", "nonsense; c=2; =").cookies.all
        let told = Set(cookies.map { "\($0.domain) \($0.name)=\($0.value)" })
        let pairs = ["a=1", "b=x=y", "c=2"]
        #expect(told == Set(pairs.map { "a.example " + $0 } + pairs.map { "b.example " + $0 }))
        #expect(cookies.allSatisfy { $0.isHostOnly && $0.expires == nil })
    }

    @Test("Cookie files are read and written back") func filesAreReadAndWrittenBack() throws {
        try withFile { path in
            let first = try memory("--cookies", path)
            let cookie = try #require(Cookie(name: "n", value: "v", domain: "a.example"))
            first.cookies.set(cookie)
            #expect(try write(first) == .done)
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            #expect(try memory("-b", path).cookies.all.map(\.name) == ["n"])
            // -b alone writes nothing.
            let second = try memory("-b", path)
            second.cookies.removeAll()
            #expect(try write(second) == .done && memory("-b", path).cookies.all.count == 1)
            #expect(try write(memory("-c", path)) == .done && memory("-b", path).cookies.all.isEmpty)
        }
        #expect(
            try write(memory("-c", "/nowhere/at/all")) == .write && memory("-b", "/nowhere/at/all").cookies.all.isEmpty)
    }

    @Test("--hsts reads and writes curl's format") func strictTransportIsInCurlsFormat() throws {
        try withFile { path in
            let stored =
                "# x\n.a.example \"20991231 23:59:58\"\nb.example \"unlimited\"\n"
                + "c.example \"20001231 23:59:59\"\nnonsense\nd \"2099\"\n"
            try Data(stored.utf8).write(to: URL(filePath: path))
            let memory = try memory("--hsts", path)
            #expect(memory.hsts.all.map(\.name) == ["a.example", "b.example"])
            #expect(
                memory.hsts.all.first?.includesSubdomains == true && memory.hsts.all.last?.includesSubdomains == false)
            #expect(try write(memory) == .done)
            let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
            #expect(text.hasSuffix("\n.a.example \"20991231 23:59:58\"\nb.example \"unlimited\"\n"))
        }
    }

    @Test("Cookies of -b work for IPv6 addresses") func addressesOfVersion6HaveCookiesToo() throws {
        let memory = try Memory(try ArgumentParser.parse(["-b", "a=1; nonsense; b\u{1}=secret;", "http://[::1]/"]))
        #expect(memory.cookies.all.map(\.domain) == ["[::1]"])
        #expect(memory.complaints.count == 2 && !memory.complaints.joined().contains("secret"))
    }

    @Test("Symbolic links are kept, and devices are written to") func linksKeepPointingAndDevicesStay() throws {
        try withFile { path in
            defer { unlink(path + "-link") }
            for _ in 0..<2 {
                // At first the link's target does not exist.
                if symlink(path, path + "-link") != 0 { #expect(errno == EEXIST) }
                let code = try write(memory("-c", path + "-link"))
                let text = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
                #expect(code == .done && text.hasPrefix("# Netscape"))
                var status = stat()
                #expect(lstat(path + "-link", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
                #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
            }
        }
        let code = try write(memory("--cookies", "/dev/null", "--hsts", "/dev/null"))
        #expect(code == .done)
        var status = stat()
        #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
    }

    @Test("Pipes are written to") func pipesAreWrittenTo() throws {
        try withFile { path in
            #expect(mkfifo(path, 0o600) == 0)
            // Both ends are closed, so that no read blocks.
            let end = open(path, O_RDWR | O_NONBLOCK)
            defer { close(end) }
            let code = try write(memory("-c", path))
            #expect(code == .done)
            var bytes = [UInt8](repeating: 0, count: 200)
            let count = read(end, &bytes, bytes.count)
            #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).hasPrefix("# Netscape"))
        }
    }
}
