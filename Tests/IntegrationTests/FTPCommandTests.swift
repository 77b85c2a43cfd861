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
    /// Waits until `urlload` has received this many bytes and stored a resume token: a run killed before begins anew.
    private func untilResumable(_ folder: TemporaryFolder, size: Int) async throws {
        try await eventuallyFiles(folder.names) { $0.contains(".file.urlload") && folder.largestSize >= size }
    }

    @Test(
        "A second run does not fetch again the bytes of a killed one",
        .enabled(if: Servers.variable("VSFTPD") != nil, "No vsftpd"))
    func killed() async throws {
        let held = try Servers.text("FTP_FILES", "/pub/killed.bin")
        let folder = try TemporaryFolder()
        // Sparse, and large enough at the rate to be killed in the middle; with distinct bytes here and there.
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
        let running = try Running(
            Running.urlloadPath, ["-C", "-s", "--limit-rate", "10m", "-o", "file", target], in: folder)
        try await untilResumable(folder, size: 1 << 20)
        running.send(SIGKILL)
        _ = try await running.wait()
        #expect(
            folder.largestSize < Int(length) && folder.names.contains(".file.urlload"),
            "\(folder.names) \(folder.largestSize)")
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
            try await untilResumable(folder, size: 1_000_000)
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

extension TemporaryFolder {
    /// The size of the largest file in bytes; 0 without files.
    fileprivate var largestSize: Int {
        names.compactMap { (try? FileManager.default.attributesOfItem(atPath: path + "/" + $0))?[.size] as? Int }
            .max() ?? 0
    }
}
