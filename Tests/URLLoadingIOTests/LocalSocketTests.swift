// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoadingIO

@Suite struct LocalSocketTests {
    @Test("A connection waits for a place in a full backlog, and the listener is not taken for abandoned")
    func fullBacklog() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(path) }
        let listener = try LocalListener(path: path, backlog: 0)
        var waiting: [LocalSocket] = []
        while waiting.count < 10, let socket = try? LocalSocket.connect(to: path) { waiting.append(socket) }
        #expect(waiting.count < 10)
        #expect(!LocalListener.isAbandoned(path))
        await #expect(throws: IOFailure.self) { try await LocalSocket.connect(to: path, timeout: .zero) }

        let late = Task { try await LocalSocket.connect(to: path, timeout: .seconds(60)) }
        // One more than had a place: the late connection got one.
        for _ in 0...waiting.count { try await listener.accept(.never).close() }
        try await late.value.close()
        for socket in waiting { socket.close() }
    }

    @Test("A connection that waits for a place in a full backlog ends when its task is cancelled")
    func cancelledWait() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(path) }
        let listener = try LocalListener(path: path, backlog: 0)
        defer { withExtendedLifetime(listener) {} }
        var waiting: [LocalSocket] = []
        while let socket = try? LocalSocket.connect(to: path) { waiting.append(socket) }
        let late = Task { try await LocalSocket.connect(to: path, timeout: .seconds(600)) }
        late.cancel()
        await #expect(throws: IOFailure.self) { try await late.value }
        for socket in waiting { socket.close() }
    }

    @Test("A socket that its listener left is abandoned; another file is not")
    func abandoned() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(path) }
        #expect(!LocalListener.isAbandoned(path))
        _ = try LocalListener(path: path)
        // A process that another test starts at this moment has the descriptor, too, until its program begins.
        while !LocalListener.isAbandoned(path) { try await Task.sleep(for: .milliseconds(1)) }
        // The next listener takes its place.
        let next = try LocalListener(replacing: path)
        #expect(!LocalListener.isAbandoned(path))
        withExtendedLifetime(next) {}
        unlink(path)
        try Data("kept".utf8).write(to: URL(filePath: path))
        #expect(!LocalListener.isAbandoned(path))
    }
}
