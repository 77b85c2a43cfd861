// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting

/// Odd values of tasks, sessions and progress: an error or a sane value, and never the end of the process.
@Suite(.timeLimit(.minutes(4)))
struct OddValueRows {
    private static let numbers = [Int.min, -1, 0, 1, 65_536, Int.max - 1, Int.max]
    private static let seconds: [TimeInterval] = [
        .nan, .infinity, -.infinity, -1, 0, .leastNonzeroMagnitude, 1e9, 1e18, 1e300, -1e300,
    ]

    private func task(_ session: URLSession = .shared) throws -> URLSessionDataTask {
        session.dataTask(with: try url("http://127.0.0.1:1/"))
    }

    // MARK: Progress

    @Test("one parent may have tasks with more bytes than expected, or of unknown length, beside two large tasks")
    func siblings() throws {
        let all = Progress(totalUnitCount: 4)
        let known = [try task(), try task()], beyond = try task(), unknown = try task()
        for task in known + [beyond, unknown] { all.addChild(task.progress, withPendingUnitCount: 1) }
        (known[0].progress.totalUnitCount, known[1].progress.totalUnitCount) = (31_000_003, 29_000_017)
        beyond.progress.totalUnitCount = 997
        for step: Int64 in 1...20 {
            for task in known { task.progress.completedUnitCount = step * 1_000_003 }
            beyond.progress.completedUnitCount = step * 1_000_000
            unknown.progress.completedUnitCount = step << 40
            #expect((0...1).contains(all.fractionCompleted))
        }
        #expect(beyond.progress.completedUnitCount == 20_000_000 && beyond.progress.isIndeterminate)
        // A body of unknown length shows its bytes, and has no fraction.
        #expect(unknown.progress.completedUnitCount == 20 << 40 && unknown.progress.totalUnitCount == -1)
        #expect(unknown.progress.isIndeterminate && unknown.progress.fractionCompleted == 0)
        #expect((0.64..<0.65).contains(known[0].progress.fractionCompleted))
        for task in known + [beyond, unknown] {
            (task.progress.totalUnitCount, task.progress.completedUnitCount) = (1 << 50, 1 << 50)
        }
        #expect(all.fractionCompleted == 1 && all.isFinished)
    }

    @Test("any counts in a task's progress are shown, and give a fraction from 0 to 1")
    func oddCounts() throws {
        let all = Progress(totalUnitCount: 3)
        let tasks = [try task(), try task()]
        for task in tasks { all.addChild(task.progress, withPendingUnitCount: 1) }
        let counts = Self.numbers.map { Int64($0) } + [2, 7, 1 << 40]
        for total in counts {
            for completed in counts {
                for (task, isSwapped) in zip(tasks, [false, true]) {
                    let progress = task.progress
                    progress.completedUnitCount = isSwapped ? total : completed
                    progress.totalUnitCount = isSwapped ? completed : total
                    #expect((0...1).contains(progress.fractionCompleted))
                }
                #expect(tasks[0].progress.totalUnitCount == total)
                #expect(tasks[0].progress.completedUnitCount == completed && all.fractionCompleted.isFinite)
            }
        }
    }

    @Test("more bytes than the program expected make the length unknown until the end")
    func beyondExpectation() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok("\($0.bodyCount)") }
            let recorder = Recorder()
            let session = recorder.session()
            var request = URLRequest(url: origin.url())
            request.httpMethod = "PUT"
            request.httpBodyStream = InputStream(data: Data(count: 100_000))
            let task = session.dataTask(with: request)
            (task.countOfBytesClientExpectsToSend, task.countOfBytesClientExpectsToReceive) = (1, 1)
            let progress = task.progress, all = Progress(totalUnitCount: 1)
            all.addChild(progress, withPendingUnitCount: 1)
            let fractions = Box<Double>()
            recorder.onSent = { _, _ in fractions.add(progress.fractionCompleted) }
            await recorder.complete(task)
            #expect(fractions.all.allSatisfy { (0...1).contains($0) })
            #expect(progress.completedUnitCount == 100_006 && progress.totalUnitCount == 100_006)
            #expect(progress.isFinished && all.fractionCompleted == 1)
            await recorder.expectOrder(session)
        }
    }

    // MARK: Tables

    @Test("odd time-outs mean no limit, and odd connection counts mean one", arguments: 0..<3)
    func settings(_ kind: Int) async throws {
        try await withHTTPTestServer(answering: "in") { origin in
            for number in kind == 2 ? Self.numbers.map({ TimeInterval($0) }) : Self.seconds {
                // A limit of less than a nanosecond ends any load.
                guard number != .leastNonzeroMagnitude else { continue }
                let configuration = URLSessionConfiguration.ephemeral
                switch kind {
                case 0: configuration.timeoutIntervalForRequest = number
                case 1: configuration.timeoutIntervalForResource = number
                default: configuration.httpMaximumConnectionsPerHost = Int(exactly: number) ?? .max
                }
                let session = URLSession(configuration: configuration)
                let own = URLRequest(url: origin.url(), timeoutInterval: kind == 0 ? number : 60)
                for request in [URLRequest(url: origin.url()), own] {
                    #expect(await session.result(request).data == Data("in".utf8), "\(kind) \(number)")
                }
                session.invalidateAndCancel()
            }
        }
    }

    @Test("tasks take any priority, expected count, begin date and maximum size")
    func values() async throws {
        let recorder = Recorder()
        let session = recorder.session()
        var count = 0
        for number in Self.seconds {
            let task = try task(session)
            (task.priority, task.earliestBeginDate) = (Float(number), Date(timeIntervalSince1970: number))
            (task.countOfBytesClientExpectsToSend, task.countOfBytesClientExpectsToReceive) = (.min, .max)
            _ = (task.progress.fractionCompleted, task.description)
            task.resume()
            task.priority = Float(number)
            task.cancel()
            count += 1
        }
        await recorder.completed.reaches(count)
        await recorder.expectOrder(session)
        for number in Self.numbers {
            let socket = URLSession.shared.webSocketTask(with: try url("ws://127.0.0.1:1/"))
            socket.maximumMessageSize = number
            #expect(socket.maximumMessageSize == number)
            socket.cancel()
        }
    }

    @Test("a WebSocket task with a request that can open none is suspended until it is resumed, and then fails")
    func webSocketRequests() async throws {
        let recorder = Recorder()
        let session = recorder.session()
        let task = session.webSocketTask(with: try url("ftp://odd.test/"))
        // Its end would be told through the queue.
        await withCheckedContinuation { continuation in session.delegateQueue.addOperation { continuation.resume() } }
        #expect(task.state == .suspended && task.error == nil && recorder.completed.value == 0)
        task.resume()
        await recorder.completed.reaches(1)
        #expect((task.error as? URLError)?.code == .unsupportedURL && task.state == .completed)
        session.invalidateAndCancel()
    }

    @Test("protection spaces with any port keep their credentials; caches take any capacity and date")
    func stores() throws {
        let credential = URLCredential(user: "u", password: "p", persistence: .forSession)
        let request = URLRequest(url: try url("http://odd.test/"))
        for number in Self.numbers {
            let storage = HTTPCookieStorage(), credentials = URLCredentialStorage()
            let space = URLProtectionSpace(
                host: "odd.test", port: number, protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            credentials.setDefaultCredential(credential, for: space)
            #expect(credentials.defaultCredential(for: space)?.user == "u" && space.port == number)
            let cache = URLCache(memoryCapacity: number, diskCapacity: 0, directory: nil)
            let response = try #require(
                HTTPURLResponse(
                    url: try url("http://odd.test/"), statusCode: number, httpVersion: nil,
                    headerFields: ["Age": "\(number)", "Cache-Control": "max-age=\(number)", "Date": "\(number)"]))
            cache.storeCachedResponse(CachedURLResponse(response: response, data: Data(count: 3)), for: request)
            _ = cache.cachedResponse(for: request)
            for seconds in Self.seconds {
                cache.removeCachedResponses(since: Date(timeIntervalSince1970: seconds))
                storage.removeCookies(since: Date(timeIntervalSince1970: seconds))
            }
            cache.memoryCapacity = number
            #expect(cache.currentMemoryUsage >= 0)
        }
    }

    @Test("streams with odd ports fail; odd byte counts and time-outs of reads end with a result")
    func streams() async throws {
        for port in [Int.min, -1, 0, 65_536, .max] {
            let recorder = Recorder()
            let session = recorder.session()
            let task = session.streamTask(withHostName: "127.0.0.1", port: port)
            await recorder.complete(task)
            #expect((task.error as? URLError)?.code == .badURL)
            session.invalidateAndCancel()
        }
        try await withHTTPTestServer(answering: "in") { origin in
            for (least, most) in [(0, 0), (-1, -1), (5, 1), (Int.max, Int.max), (.min, .max), (0, .max), (1, -1)] {
                for seconds in Self.seconds {
                    let session = URLSession(configuration: .ephemeral)
                    let task = session.streamTask(withHostName: "127.0.0.1", port: origin.url().port ?? 0)
                    task.resume()
                    let request = Data("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)
                    _ = try? await task.write(request, timeout: seconds)
                    let read = try? await task.readData(ofMinLength: least, maxLength: most, timeout: seconds)
                    // A maximum below the minimum counts as the minimum, and below 1 as 1.
                    if let data = read?.0 { #expect(data.count <= max(1, least, most)) }
                    session.invalidateAndCancel()
                }
            }
        }
    }

    @Test("a class's response with any status and length is delivered")
    func responses() async throws {
        let target = try url("http://odd.test/")
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [ScriptedProtocol.self]
        for number in Self.numbers {
            ScriptedProtocol.script("odd.test") {
                $0.answer("in", status: number, fields: ["Content-Length": "\(number)"], .allowed)
            }
            let session = URLSession(configuration: configuration)
            let result = await session.result(URLRequest(url: target))
            #expect(result.data == Data("in".utf8) || result.error != nil)
            #expect((result.response as? HTTPURLResponse)?.statusCode == number || result.error != nil)
            let response = URLResponse(url: target, mimeType: "", expectedContentLength: number, textEncodingName: "")
            #expect(response.expectedContentLength == Int64(number) && response.suggestedFilename != nil)
            session.invalidateAndCancel()
        }
    }

    @Test("URLs of 1 MB end with a response or an error")
    func longURLs() async throws {
        try await withHTTPTestServer(answering: "in") { origin in
            let session = URLSession(configuration: .ephemeral)
            let base = origin.url().absoluteString, many = String(repeating: "a", count: 1 << 20)
            for text in [base + many, base + "?" + many, base + "#" + many, "http://\(many)/", "\(many)://a/"] {
                let result = await session.result(URLRequest(url: try url(text)))
                #expect(result.data != nil || result.error != nil)
            }
            session.invalidateAndCancel()
        }
    }
}
