// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/streams.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct StreamsGuideTests {
    @Test("a stream is written and read, by calls and by sequences at once")
    func both() async throws {
        let rig = try StreamRig()
        let (session, port) = (rig.session, Int(rig.listener.address.port))
        async let echo: Void = rig.accept().echo()

        let task = session.streamTask(host: "stream.example", port: port)
        task.resume()
        try await task.write(Data("hello\n".utf8))
        let (answer, isEnd) = try await task.read(atLeast: 6, atMost: 6, timeout: .seconds(5))
        #expect(answer == Data("hello\n".utf8) && !isEnd)

        let lines = ["one\n", "two\n"]
        var received = Data()
        async let sending: Void = {
            for line in lines { try await task.output.write(Data(line.utf8)) }
            try await task.output.close()
        }()
        for try await chunk in task.input { received.append(chunk) }
        try await sending
        #expect(received == Data("one\ntwo\n".utf8))

        try await echo
        let error = await task.ended()
        #expect(error == nil)
        await rig.finish()
    }

    @Test("TLS begins in mid-stream")
    func upgrade() async throws {
        let rig = try StreamRig()
        async let server = {
            let plain = try await rig.accept()
            _ = try await plain.receive(10)
            try await plain.send("220 ready\r\n")
            return try await rig.secure(plain)
        }()
        let task = rig.task()
        task.resume()

        try await task.write(Data("STARTTLS\r\n".utf8))
        let (go, _) = try await task.read(atLeast: 11, atMost: 11)  // "220 ready\r\n", and no more
        try await task.startSecureConnection()

        #expect(go == Data("220 ready\r\n".utf8) && task.isSecure)
        try await server.close()
        task.cancel()
        await rig.finish()
    }
}
