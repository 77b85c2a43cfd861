// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading
import URLLoadingTesting

@Suite(.timeLimit(.minutes(5)))
struct HTTP2MisbehaviourTests {
    @Test("each fault has a distinct name")
    func names() {
        let names = HTTP2Fault.all.map(\.name)
        #expect(Set(names).count == names.count && names.count > 120)
        #expect(HTTP2Fault.named("PING flood")?.outcome == .connectionFails())
    }

    /// A client that notices nothing, and leaves after a while: no fault may wait for ever, or complain of it.
    @Test("each can be played and ends with its client", .serialized, arguments: HTTP2Fault.all)
    func playing(_ fault: HTTP2Fault) async throws {
        try await withHTTP2TestServer { server in
            server.inject(fault)
            // One that resets at once can do so before this is done connecting.
            let client = try? await RawHTTP2Client(server)
            let request = HTTP2Frame.headers(stream: 1, RawHTTP2Client.get(), endStream: true)
            let all =
                RawHTTP2Client.preface + HTTP2Frame.settings().bytes + HTTP2Frame.settingsAck.bytes + request.bytes
            // Some close before it is sent.
            try? await client?.send(all)
            if fault.outcome == .succeeds {
                let answer = try await client?.answer()
                #expect(answer?.text == "ok" && answer?.status == "200")
            } else {
                // The script has received all it waits for; its own bytes need not be frames.
                try await server.wait { $0.frames >= 3 || $0.scriptsEnded == 1 }
            }
            client?.close()
            try await server.wait { $0.scriptsEnded == 1 && $0.open == 0 }
            #expect(server.failures.isEmpty, "\(server.failures)")
        }
    }

    @Test("uploads into windows that shrink or hardly open", arguments: [HTTP2Fault.windowShrinks, .windowByByte])
    func uploads(_ fault: HTTP2Fault) async throws {
        try await withHTTP2TestServer { server in
            server.inject(fault)
            let client = try await RawHTTP2Client(server)
            let first = try await client.start()
            try await client.send(.headers(stream: 1, RawHTTP2Client.get("/", method: "PUT")))
            let upload = FrameUpload(200_000)
            upload.note(first)
            while let data = upload.next() { try await client.send(data) }
            try await finish(upload, client)
            #expect(upload.left == 0)
            #expect(server.failures.isEmpty, "\(server.failures)")
        }
    }

    @Test("an upload that began before it read SETTINGS", arguments: [HTTP2Fault.windowShrinks, .windowByByte])
    func earlyUploads(_ fault: HTTP2Fault) async throws {
        try await withHTTP2TestServer { server in
            server.inject(fault)
            let client = try await RawHTTP2Client(server)
            let upload = FrameUpload(100_000)
            try await client.send(RawHTTP2Client.preface + HTTP2Frame.settings().bytes)
            try await client.send(.headers(stream: 1, RawHTTP2Client.get("/", method: "PUT")))
            while let data = upload.next() { try await client.send(data) }
            #expect(upload.left == 100_000 - 65_535)
            try await finish(upload, client)
            #expect(upload.left == 0)
            #expect(server.failures.isEmpty, "\(server.failures)")
        }
    }

    private func finish(_ upload: FrameUpload, _ client: RawHTTP2Client) async throws {
        while let frame = await client.receive() {
            upload.note(frame)
            if frame.kind == .settings, !frame.isAck { try await client.send(.settingsAck) }
            if frame.kind == .ping, !frame.isAck { try await client.send(.ping(frame.payload, ack: true)) }
            while let data = upload.next() { try await client.send(data) }
            if frame.endsStream { return }
        }
    }

    @Test(
        "an upload that ignores windows is complained of",
        arguments: [HTTP2Fault.windowShrinks, .windowByByte, .windowNeverOpens])
    func overruns(_ fault: HTTP2Fault) async throws {
        try await withHTTP2TestServer { server in
            server.inject(fault)
            let client = try await RawHTTP2Client(server)
            try await client.start()
            try await client.send(.headers(stream: 1, RawHTTP2Client.get("/", method: "PUT")))
            // A fault that shrinks says so after 65,535 bytes. The server may have closed before the last of them is
            // written.
            for _ in 0..<4 { try? await client.send(.data(stream: 1, [UInt8](repeating: 0, count: 16_384))) }
            if fault.name == HTTP2Fault.windowShrinks.name {
                _ = try await client.receive(.ping)
                try await client.send(.data(stream: 1, [1]), .ping([UInt8](repeating: 0, count: 8), ack: true))
            }
            try await server.wait { $0.scriptsEnded == 1 }
            #expect(server.failures.count == 1, "\(server.failures)")
        }
    }
}

/// A body that keeps to the windows it is given.
private final class FrameUpload {
    private(set) var left: Int
    private var connection = 65_535
    private var stream = 65_535
    private var initial = 65_535

    init(_ size: Int) { left = size }

    func note(_ frame: HTTP2Frame) {
        if let settings = frame.settings, !frame.isAck, let size = settings.last(where: { $0.identifier == 4 }) {
            stream += Int(size.value) - initial
            initial = Int(size.value)
        }
        if frame.stream == 0 { connection += frame.increment ?? 0 } else { stream += frame.increment ?? 0 }
    }

    func next() -> HTTP2Frame? {
        let size = min(left, connection, stream, 16_384)
        guard size > 0 else { return nil }
        left -= size
        connection -= size
        stream -= size
        return .data(stream: 1, [UInt8](repeating: 0, count: size), endStream: left == 0)
    }
}
