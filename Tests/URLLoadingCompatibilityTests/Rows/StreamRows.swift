import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTesting

@Suite(.timeLimit(.minutes(1)))
struct StreamRows {
    @Test("checklist 39: reads and writes in their order, both ends closed, and told on the delegate queue")
    func both() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
        #expect(task.originalRequest == nil && task.state == .suspended)
        let written = Box<String>(), read = Box<String>(), done = Counter()
        for number in 0..<5 {
            task.write(Data("\(number)".utf8), timeout: 0) { error in
                written.add("\(number) \(error == nil) \(OperationQueue.current === session.delegateQueue)")
                done.add()
            }
            task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { data, isEnd, error in
                read.add("\(String(decoding: data ?? Data(), as: UTF8.self)) \(isEnd) \(error == nil)")
                done.add()
            }
        }
        task.resume()
        let peer = try await StreamPeer(listener)
        let text = try await peer.text(5)
        #expect(text == "01234")
        try await peer.send("aabbccddee")
        await done.reaches(10)
        #expect(written.all == (0..<5).map { "\($0) true true" })
        #expect(read.all == ["aa", "bb", "cc", "dd", "ee"].map { "\($0) false true" })
        try await task.write(Data("last".utf8), timeout: 5)
        task.closeWrite()
        let rest = try await peer.text()
        #expect(rest == "last")
        try await peer.send("end")
        peer.finish()
        let (data, isEnd) = try await task.readData(ofMinLength: 10, maxLength: 100, timeout: 5)
        #expect(data == Data("end".utf8) && isEnd)
        await delegate.done.reaches(1)
        #expect(delegate.words.all == ["writeClosed", "readClosed", "complete 0"])
        #expect(task.state == .completed && task.countOfBytesSent == 9 && task.countOfBytesReceived == 13)
        await #expect(throws: URLError.self) { try await task.write(Data("late".utf8), timeout: 0) }
        session.finishTasksAndInvalidate()
        await delegate.heard.reaches(4)
        peer.close()
        listener.close()
    }

    @Test("a read that takes too long ends, and the stream goes on; closeRead, cancel")
    func ends() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
        task.resume()
        let peer = try await StreamPeer(listener)
        do {
            _ = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0.02)
            Issue.record("nothing was sent")
        } catch { #expect((error as? URLError)?.code == .timedOut) }
        try await peer.send("a")
        let (data, _) = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 5)
        #expect(data == Data("a".utf8))
        task.closeRead()
        await delegate.heard.reaches(1)
        task.cancel()
        await delegate.done.reaches(1)
        #expect(delegate.words.all == ["readClosed", "complete -999"])
        session.finishTasksAndInvalidate()
        peer.close()
        listener.close()
    }

    @Test("nobody there, a host that is none, a task of a session that has ended: the task fails, and its calls")
    func fails() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let port = Int(listener.address.port)
        listener.close()
        let delegate = Listener()
        let session = delegate.session()
        for (host, port) in [("127.0.0.1", port), ("no host", 80), ("127.0.0.1", 0)] {
            let task = session.streamTask(withHostName: host, port: port)
            let failed = Counter(), before = delegate.done.value
            task.write(Data("a".utf8), timeout: 0) { if $0 is URLError { failed.add() } }
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { if $2 is URLError { failed.add() } }
            task.resume()
            await delegate.done.reaches(before + 1)
            await failed.reaches(2)
        }
        #expect(delegate.words.all.count == 3 && delegate.words.all.allSatisfy { $0.hasPrefix("complete -100") })
        session.finishTasksAndInvalidate()
        await delegate.heard.reaches(4)
        let late = session.streamTask(withHostName: "127.0.0.1", port: port)
        late.resume()
        try await eventually { late.state == .completed }
    }

    @Test("TLS begins in mid-stream, behind what was asked for; the session's delegate is asked whom to trust")
    func secure() async throws {
        let identity = try TestCertificateAuthority(commonName: "Nobody's").issue(.init(names: ["127.0.0.1"]))
        let context = try TLSServerContext(.init(certificateChain: identity.certificatePEM, privateKey: identity.keyPEM))
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        delegate.trustsAll = true
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
        task.resume()
        let got = Counter()
        task.write(Data("STARTTLS".utf8), timeout: 0) { _ in }
        task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { data, _, _ in if data == Data("go".utf8) { got.add() } }
        task.startSecureConnection()
        task.write(Data("secret".utf8), timeout: 0) { _ in }
        let plain = try await StreamPeer(listener)
        let hello = try await plain.text(8)
        #expect(hello == "STARTTLS")
        try await plain.send("go")
        let peer = try await plain.secured(by: context)
        let secret = try await peer.text(6)
        #expect(secret == "secret")
        await got.reaches(1)
        #expect(delegate.words.all == ["trust"])
        session.invalidateAndCancel()
        await delegate.done.reaches(1)
        peer.close()
        listener.close()
    }

    @Test("captureStreams gives a pair of streams behind what was asked for, and ends the task")
    func captured() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        let heard = Box<String>(), ended = Counter()
        delegate.onStreams = { input, output in
            nonisolated(unsafe) let (input, output) = (input, output)
            // They block.
            Thread.detachNewThread {
                input.open()
                output.open()
                _ = output.write(Array("hello".utf8), maxLength: 5)
                output.close()
                var bytes = [UInt8](repeating: 0, count: 10)
                while case let count = input.read(&bytes, maxLength: 10), count > 0 {
                    heard.add(String(decoding: bytes[..<count], as: UTF8.self))
                }
                heard.add("\(input.streamStatus == .atEnd) \(input.streamError == nil)")
                input.close()
                ended.add()
            }
        }
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
        task.write(Data("first".utf8), timeout: 0) { _ in }
        task.captureStreams()
        task.resume()
        let peer = try await StreamPeer(listener)
        let all = try await peer.text()
        #expect(all == "firsthello")
        try await peer.send("answer")
        peer.finish()
        await ended.reaches(1)
        #expect(heard.all.joined(separator: "|") == "answer|true true")
        #expect(delegate.words.all == ["streams"] && task.state == .completed && task.error == nil)
        session.finishTasksAndInvalidate()
        await delegate.heard.reaches(2)
        #expect(delegate.words.all == ["streams", "invalid"])
        peer.close()
        listener.close()
    }
}
