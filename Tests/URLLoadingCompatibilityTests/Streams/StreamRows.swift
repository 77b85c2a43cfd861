// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct StreamRows {
    @Test("reads and writes run in order, both sides close, and the delegate is notified on its queue (checklist 39)")
    func both() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
        #expect(task.originalRequest == nil && task.state == .suspended)
        let written = Box<String>()
        let read = Box<String>()
        let done = Counter()
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
        #expect(delegate.words.all == ["writeClosed", "readClosed", "metrics", "complete 0"])
        #expect(task.state == .completed && task.countOfBytesSent == 9 && task.countOfBytesReceived == 13)
        await #expect(throws: URLError.self) { try await task.write(Data("late".utf8), timeout: 0) }
        session.finishTasksAndInvalidate()
        await delegate.heard.reaches(5)
        peer.close()
        listener.close()
    }

    @Test("a read that times out ends, and the stream continues; closeRead, cancel")
    func ends() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port)).resumed()
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
        #expect(delegate.words.all == ["readClosed", "metrics", "complete -999"])
        session.finishTasksAndInvalidate()
        peer.close()
        listener.close()
    }

    @Test("without a peer, with an invalid host, or in an ended session the task and its calls fail")
    func fails() async throws {
        // A port that was free a moment ago may be another row's by now; below 1024 there is none.
        let port = 1
        let delegate = Listener()
        let session = delegate.session()
        for (host, port) in [("127.0.0.1", port), ("no host", 80), ("127.0.0.1", 0)] {
            let task = session.streamTask(withHostName: host, port: port)
            let failed = Counter()
            let before = delegate.done.value
            task.write(Data("a".utf8), timeout: 0) { if $0 is URLError { failed.add() } }
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { if $2 is URLError { failed.add() } }
            task.resume()
            await delegate.done.reaches(before + 1)
            await failed.reaches(2)
        }
        let words = delegate.words.all
        #expect(
            words.count == 6
                && words.enumerated().allSatisfy { $0 % 2 == 0 ? $1 == "metrics" : $1.hasPrefix("complete -100") })
        session.finishTasksAndInvalidate()
        await delegate.heard.reaches(7)
        let late = session.streamTask(withHostName: "127.0.0.1", port: port).resumed()
        try await late.eventually(.completed)
    }

    @Test("TLS starts in mid-stream after pending operations; the session's delegate decides about the server")
    func secure() async throws {
        let identity = try TestCertificateAuthority(commonName: "Untrusted").issue(.init(names: ["127.0.0.1"]))
        let context = try TLSServerContext(
            .init(certificateChain: identity.certificatePEM, privateKey: identity.keyPEM))
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        delegate.trustsAll = true
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port)).resumed()
        let got = Counter()
        task.write(Data("STARTTLS".utf8), timeout: 0) { _ in }
        task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { data, _, _ in if data == Data("go".utf8) { got.add() }
        }
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

    /// Records the calls of one stream.
    final class Measuring: NSObject, URLSessionTaskDelegate, Sendable {
        let metrics = Box<URLSessionTaskMetrics>(), isLast = Box<Bool>(), done = Counter()
        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)
        {
            self.metrics.add(metrics)
            isLast.add(OperationQueue.current === session.delegateQueue && done.value == 0)
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            done.add()
        }
    }

    @Test("a stream has metrics before its last call: its times, addresses and bytes")
    func metrics() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Measuring()
        let session = URLSession(configuration: .ephemeral)
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
        task.delegate = delegate
        task.resume()
        let peer = try await StreamPeer(listener)
        try await task.write(Data("hello".utf8), timeout: 5)
        try await peer.send("abc")
        _ = try await task.readData(ofMinLength: 3, maxLength: 3, timeout: 5)
        task.cancel()
        await delegate.done.reaches(1)
        let metrics = try #require(delegate.metrics.all.first)
        let one = try #require(metrics.transactionMetrics.first)
        #expect(delegate.metrics.all.count == 1 && delegate.isLast.all == [true])
        #expect(metrics.redirectCount == 0 && metrics.transactionMetrics.count == 1)
        #expect(
            one.remotePort == "\(listener.address.port)" && one.remoteAddress == "127.0.0.1" && one.localPort != nil)
        #expect(one.countOfRequestBodyBytesSent == 5 && one.countOfResponseBodyBytesReceived == 3)
        #expect(
            one.networkProtocolName == nil && one.response == nil && one.requestStartDate == nil
                && one.secureConnectionStartDate == nil)
        let (begin, end) = (try #require(one.connectStartDate), try #require(one.connectEndDate))
        #expect(begin <= end && metrics.taskInterval.start <= begin && end <= metrics.taskInterval.end)
        session.invalidateAndCancel()
        peer.close()
        listener.close()
    }

    /// Accepts every server, for one task.
    final class Trusting: NSObject, URLSessionTaskDelegate, Sendable {
        let asked = Counter()
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            asked.add()
            guard let trust = challenge.protectionSpace.serverTrust else {
                return completionHandler(.performDefaultHandling, nil)
            }
            completionHandler(.useCredential, URLCredential(trust: trust))
        }
    }

    @Test("in a session without a delegate a stream's own delegate decides about the server, for this stream only")
    func ownTrust() async throws {
        let identity = try TestCertificateAuthority(commonName: "Untrusted").issue(.init(names: ["127.0.0.1"]))
        let context = try TLSServerContext(
            .init(certificateChain: identity.certificatePEM, privateKey: identity.keyPEM))
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let session = URLSession(configuration: .ephemeral)
        func secured(by delegate: Trusting?) async throws -> Bool {
            let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port))
            task.delegate = delegate
            task.resume()
            task.startSecureConnection()
            let written = Box<Bool>()
            let done = Counter()
            task.write(Data("secret".utf8), timeout: 0) {
                written.add($0 == nil)
                done.add()
            }
            let peer = try await StreamPeer(listener)
            let secure = try? await peer.secured(by: context)
            let text = try? await secure?.text(6)
            await done.reaches(1)
            task.cancel()
            secure?.close()
            return written.all == [true] && text == "secret"
        }
        let own = Trusting()
        let first = try await secured(by: own)
        let none = try await secured(by: nil)
        let again = try await secured(by: own)
        #expect(first && !none && again && own.asked.value >= 1)
        session.invalidateAndCancel()
        listener.close()
    }

    @Test("tasks without a session call their handlers")
    func standIns() async throws {
        let socket = URLSessionWebSocketTask()
        let stream = URLSessionStreamTask()
        let called = Counter()
        socket.send(.string("a")) { if $0 is URLError { called.add() } }
        socket.receive { if case .failure(let error) = $0, error is URLError { called.add() } }
        socket.sendPing { if $0 is URLError { called.add() } }
        stream.write(Data("a".utf8), timeout: 0) { if $0 is URLError { called.add() } }
        stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { if $2 is URLError { called.add() } }
        await called.reaches(5)
        await #expect(throws: URLError.self) { _ = try await socket.receive() }
        await #expect(throws: URLError.self) { try await stream.write(Data("a".utf8), timeout: 0) }
    }

    @Test("captureStreams provides a pair of streams after pending operations, and ends the task")
    func captured() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        let heard = Box<String>()
        let ended = Counter()
        let roomless = Box<Int>()
        delegate.onStreams = { input, output in
            nonisolated(unsafe) let (input, output) = (input, output)
            // Foundation's streams block.
            Thread.detachNewThread {
                input.open()
                output.open()
                _ = output.write(Array("hello".utf8), maxLength: 5)
                output.close()
                var bytes = [UInt8](repeating: 0, count: 10)
                // A write without room writes nothing and loses nothing.
                roomless.add(input.read(&bytes, maxLength: 0) + Int(bytes[0]))
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
        #expect(roomless.all == [0])
        #expect(delegate.words.all == ["streams"] && task.state == .completed && task.error == nil)
        session.finishTasksAndInvalidate()
        await delegate.heard.reaches(2)
        #expect(delegate.words.all == ["streams", "invalid"])
        peer.close()
        listener.close()
    }

    @Test("the delegate is notified once that a side is closed, however often it is read or closed")
    func closedOnce() async throws {
        let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
        let delegate = Listener()
        let session = delegate.session()
        let task = session.streamTask(withHostName: "127.0.0.1", port: Int(listener.address.port)).resumed()
        let peer = try await StreamPeer(listener)
        peer.finish()
        for _ in 0..<3 {
            let (data, isEnd) = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
            #expect(data == Data() && isEnd)
        }
        task.closeRead()
        task.closeWrite()
        task.closeWrite()
        await delegate.done.reaches(1)
        #expect(delegate.words.all == ["readClosed", "writeClosed", "metrics", "complete 0"])
        session.finishTasksAndInvalidate()
        peer.close()
        listener.close()
    }
}
