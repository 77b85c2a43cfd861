// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The permissions of a download: private while it grows, those of a new file when it is placed.
@Suite(.timeLimit(.minutes(4)))
struct PlacingRows {
    /// The permissions of a new file: 0666 without the bits of the process's umask.
    static func usual(_ folder: TemporaryFolder) -> mode_t {
        let path = folder.url("probe").path()
        close(open(path, O_CREAT | O_WRONLY, 0o666))
        defer { unlink(path) }
        return folder.mode("probe")
    }

    static func with(_ use: (TemporaryFolder, Session, URL) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            origin.route("/file") { _ in .ok("content") }
            let session = Session(ResumeRows.configuration(folder))
            try await use(folder, session, origin.url("/file"))
            await expectEmpty(session)
        }
    }

    @Test("a placed download has the permissions that the umask leaves; a temporary one is private")
    func fresh() async throws {
        try await Self.with { folder, session, url in
            let usual = Self.usual(folder)
            #expect(usual != 0o600, "the umask of the tests tells nothing")
            try await session.download(Request(url: url), to: folder.url("placed"))
            #expect(folder.mode("placed") == usual)
            try await session.download(Request(url: url)) { file in
                let temporary = file.url.lastPathComponent
                #expect(folder.mode(temporary) == 0o600)
                try file.move(to: folder.url("moved"))
                #expect(folder.mode("moved") == usual)
            }
        }
    }

    @Test(
        "a replaced file passes its permissions to the download, without setuid, setgid and sticky bits",
        arguments: [
            0o640, 0o600, 0o755, 0o444, 0o4755,
        ] as [mode_t])
    func replacing(_ mode: mode_t) async throws {
        try await Self.with { folder, session, url in
            for isMoved in [false, true] {
                let place = folder.url("file-\(isMoved)")
                try Data("old".utf8).write(to: place)
                chmod(place.path(), mode)
                if isMoved {
                    try await session.download(Request(url: url)) { file in try file.move(to: place) }
                } else {
                    try await session.download(Request(url: url), to: place)
                }
                var status = stat()
                lstat(place.path(), &status)
                #expect(status.st_mode & 0o7777 == mode & 0o777 && contents(place) == Data("content".utf8))
            }
        }
    }

    @Test("a link is replaced itself: its target keeps content and permissions, as does a hard link")
    func links() async throws {
        try await Self.with { folder, session, url in
            let usual = Self.usual(folder)
            try Data("old".utf8).write(to: folder.url("target"))
            chmod(folder.url("target").path(), 0o640)
            symlink("target", folder.url("link").path())
            link(folder.url("target").path(), folder.url("name").path())
            try await session.download(Request(url: url), to: folder.url("link"))
            #expect(folder.mode("link") == usual && folder.mode("target") == 0o640)
            #expect(
                contents(folder.url("target")) == Data("old".utf8)
                    && contents(folder.url("link")) == Data("content".utf8))
            try await session.download(Request(url: url), to: folder.url("name"))
            #expect(folder.mode("name") == 0o640 && folder.mode("target") == 0o640)
            #expect(
                contents(folder.url("target")) == Data("old".utf8)
                    && contents(folder.url("name")) == Data("content".utf8))
        }
    }

    @Test("a download replaces no device, pipe or socket, and is not placed at a URL of another scheme")
    func specialDestination() async throws {
        try await Self.with { folder, session, url in
            // Stands for a device: a program of the superuser must not replace /dev/null.
            let pipe = folder.url("pipe")
            #expect(mkfifo(pipe.path, 0o600) == 0)
            await expectFailure(.cannotMoveFile) { try await session.download(Request(url: url), to: pipe) }
            try await session.download(Request(url: url)) { file in
                await expectFailure(.cannotMoveFile) { try file.move(to: pipe) }
                let web = try #require(URL(string: "http://example.org/file"))
                await expectFailure(.cannotMoveFile) { try file.move(to: web) }
            }
            var status = stat()
            #expect(stat(pipe.path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
            let other = try #require(URL(string: "http://example.org\(folder.url("web").path)"))
            await expectFailure(.cannotCreateFile) { try await session.download(Request(url: url), to: other) }
            #expect(folder.names == ["pipe"])
        }
    }

    @Test("a download that could not be placed stays private")
    func notPlaced() async throws {
        try await Self.with { folder, session, url in
            try Data("old".utf8).write(to: folder.url("taken"))
            try await session.download(Request(url: url)) { file in
                await expectFailure(.cannotMoveFile) { try file.move(to: folder.url("taken"), overwriting: false) }
                #expect(folder.mode(file.url.lastPathComponent) == 0o600)
            }
        }
    }

    @Test("a download placed on another file system has the same permissions")
    func otherFileSystem() async throws {
        try await Self.with { folder, session, url in
            // A memory file system, which most machines have.
            var (here, there) = (stat(), stat())
            guard stat("/dev/shm", &there) == 0, access("/dev/shm", W_OK) == 0, stat(folder.path, &here) == 0,
                here.st_dev != there.st_dev
            else { return }
            let place = URL(filePath: "/dev/shm/urlloading-test-\(UInt64.random(in: 0 ... .max))")
            defer { unlink(place.path()) }
            let usual = Self.usual(folder)
            try await session.download(Request(url: url)) { file in try file.move(to: place) }
            var status = stat()
            lstat(place.path(), &status)
            #expect(status.st_mode & 0o777 == usual && contents(place) == Data("content".utf8))
        }
    }

    @Test("permissions set as an option take precedence over the umask and the replaced file")
    func chosen() async throws {
        try await Self.with { folder, session, url in
            var options = DownloadOptions(destination: folder.url("placed"))
            options.permissions = 0o4640
            for mode: mode_t in [0o640, 0o755] {
                let task = session.downloadTask(Request(url: url), options: options).resumed()
                _ = try await task.value
                #expect(folder.mode("placed") == 0o640)
                chmod(folder.url("placed").path(), mode)
            }
            try await session.download(Request(url: url)) { file in
                try file.move(to: folder.url("moved"), permissions: 0o600)
                #expect(folder.mode("moved") == 0o600)
                // The file is in place, with its permissions.
                try file.move(to: folder.url("renamed"))
                #expect(folder.mode("renamed") == 0o600)
                try file.move(to: folder.url("placed"))
                #expect(folder.mode("placed") == 0o755)
            }
        }
    }

    @Test(
        "a download that requires success fails for an error status, and leaves no file",
        arguments: [
            302, 304, 404, 503,
        ])
    func requiresSuccess(_ code: Int) async throws {
        let folder = try TemporaryFolder()
        try await withHTTPTestServer { origin in
            let status = try #require(Status(code))
            origin.route("/file") { _ in
                .status(status, headers: [.etag: "\"one\"", .retryAfter: "7"], body: code == 304 ? .none : .bytes([1]))
            }
            let session = Session(ResumeRows.configuration(folder))
            var options = DownloadOptions(destination: folder.url("page"))
            options.requiresSuccess = true
            let task = session.downloadTask(Request(url: origin.url("/file")), options: options).resumed()
            let error = await failure(.unacceptableStatus) { try await task.value }
            #expect(
                error?.status == status && error?.response?.http?.headers[.retryAfter] == "7"
                    && error?.resumeToken == nil)
            #expect(folder.names == [])
            await expectEmpty(session)
        }
    }
}
