// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

/// `urlload -C` with ftp, killed within a file and run again.
@Suite(.timeLimit(.minutes(4)))
struct FTPCommandTests {
    @Test(
        "A second run does not fetch again the bytes of a killed one",
        .enabled(if: Servers.variable("VSFTPD") != nil, "No vsftpd"))
    func killed() async throws {
        let held = try Servers.text("FTP_FILES", "/pub/killed.bin")
        let folder = try TemporaryFolder()
        // Sparse, and large enough at the rate of the server (ftp.sh) to be killed in the middle; with distinct bytes
        // here and there.
        let length: UInt64 = 128 << 20
        _ = FileManager.default.createFile(atPath: held, contents: nil)
        let file = try #require(FileHandle(forWritingAtPath: held))
        try file.truncate(atOffset: length)
        for offset in stride(from: 0, to: length, by: 16 << 20) {
            try file.seek(toOffset: offset)
            file.write(Data("\(offset)".utf8))
        }
        try file.close()
        chmod(held, 0o644)
        defer { unlink(held) }
        let target = try Servers.text("VSFTPD", "/pub/killed.bin")
        let running = try Running(Running.urlloadPath, ["-C", "-s", "-o", "file", target], in: folder)
        func size() -> Int {
            folder.names.compactMap {
                (try? FileManager.default.attributesOfItem(atPath: folder.path + "/" + $0))?[.size] as? Int
            }.max() ?? 0
        }
        // A run killed before the token was stored begins anew.
        try await eventually((size(), folder.names), of: .anotherProcess) { size, names in
            size >= 1 << 20 && names.contains(".file.urlload")
        }
        running.send(SIGKILL)
        _ = try await running.wait()
        #expect(size() < Int(length) && folder.names.contains(".file.urlload"), "\(folder.names) \(size())")
        let second = try await Running.urlload(["-C", "-v", "-o", "file", target], in: folder)
        let same = try await Running.command("/usr/bin/cmp", [folder.path + "/file", held])
        #expect(second.code == 0 && same.code == 0, "\(second.errors) \(same.text)")
        #expect(second.errors.contains("> REST ") && folder.names == ["file"], "\(folder.names) \(second.errors)")
    }

    @Test("A second run requests the rest, with the test server")
    func killedHere() async throws {
        try await withFTPTestServer { server in
            let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
            server.put("file", content)
            server.inject(.stallsData(after: 1_000_000))
            let folder = try TemporaryFolder()
            let target = server.url("/file").absoluteString
            let running = try Running(Running.urlloadPath, ["-C", "-s", "-o", "file", target], in: folder)
            func size() -> Int {
                folder.names.compactMap {
                    (try? FileManager.default.attributesOfItem(atPath: folder.path + "/" + $0))?[.size] as? Int
                }.max() ?? 0
            }
            // A run killed before the token was stored begins anew.
            try await eventually((size(), folder.names), of: .anotherProcess) { size, names in
                size >= 1_000_000 && names.contains(".file.urlload")
            }
            running.send(SIGKILL)
            _ = try await running.wait()
            server.removeFaults()
            let second = try await Running.urlload(["-C", "-s", "-o", "file", target], in: folder)
            let whole = try folder.bytes("file")
            #expect(second.code == 0 && whole == [UInt8](content), "\(second.errors)")
            #expect(server.commands.contains { $0.hasPrefix("REST ") && $0 != "REST 0" }, "\(server.commands)")
        }
    }
}
