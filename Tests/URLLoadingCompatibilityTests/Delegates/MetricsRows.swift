// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility
import URLLoadingTestSupport
import URLLoadingTesting

/// Every task that completes has metrics, before its last call and once: also a task that never sent a request.
@Suite(.timeLimit(.minutes(4)))
struct MetricsRows {
    /// The reason why a task ends without a response.
    enum Cause: CaseIterable, Sendable {
        case noURL, noScheme, unsupportedScheme, noHost, badMethod, refusedConnection, missingFile, notResumeData
        case streamPort, socketScheme, cancelledBeforeResume, cancelledWhileDelayed, invalidSession, ownProtocol

        func request() throws -> URLRequest {
            var request = URLRequest(url: try url("http://127.0.0.1:1/"))
            switch self {
            case .noURL: request.url = nil
            case .noScheme: request.url = try url("//a.test/")
            case .unsupportedScheme: request.url = try url("gopher://a.test/")
            case .noHost: request.url = try url("http:///a")
            case .badMethod: request.httpMethod = "A B"
            case .ownProtocol: request.url = try url("http://metrics.test/")
            default: break
            }
            return request
        }

        func tasks(_ session: URLSession) throws -> [URLSessionTask] {
            let request = try self.request()
            switch self {
            case .invalidSession:
                // A task that was never resumed keeps the session's delegate.
                _ = session.dataTask(with: request)
                session.finishTasksAndInvalidate()
            case .missingFile:
                let none = URL(fileURLWithPath: "/no/such/file")
                return [session.uploadTask(with: request, fromFile: none)]
            case .notResumeData:
                let data = Data("none".utf8)
                return [session.downloadTask(withResumeData: data), session.uploadTask(withResumeData: data)]
            case .streamPort: return [session.streamTask(withHostName: "127.0.0.1", port: 0)]
            case .socketScheme: return [session.webSocketTask(with: try url("gopher://a.test/"))]
            default: break
            }
            let tasks: [URLSessionTask] = [
                session.dataTask(with: request), session.downloadTask(with: request),
                session.uploadTask(with: request, from: Data("body".utf8)), session.webSocketTask(with: request),
            ]
            if self == .cancelledWhileDelayed { for task in tasks { task.earliestBeginDate = .distantFuture } }
            return self == .ownProtocol ? tasks.dropLast() : tasks
        }
    }

    private final class Reader: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let words = Box<String>(), metrics = Box<URLSessionTaskMetrics>()

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)
        {
            words.add("metrics \(task.taskIdentifier)")
            self.metrics.add(metrics)
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            words.add("complete \(task.taskIdentifier)")
        }
        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { words.add("invalid") }
    }

    @Test("a task without a transaction has metrics, directly before its end", arguments: Cause.allCases)
    func failures(_ cause: Cause) async throws {
        ScriptedProtocol.script("metrics.test") { $0.client?.urlProtocol($0, didFailWithError: URLError(.badURL)) }
        let reader = Reader()
        let configuration = URLSessionConfiguration.ephemeral
        if cause == .ownProtocol { configuration.protocolClasses = [ScriptedProtocol.self] }
        let session = URLSession(configuration: configuration, delegate: reader, delegateQueue: nil)
        var count = 0
        for task in try cause.tasks(session) {
            switch cause {
            case .cancelledBeforeResume: task.cancel()
            case .cancelledWhileDelayed:
                task.resume()
                task.cancel()
            default: task.resume()
            }
            count += 1
            let id = task.taskIdentifier
            // By name, because a WebSocket whose request is invalid ends before it is resumed.
            try await reader.words.wait { $0.contains("complete \(id)") }
            let words = reader.words.all.filter { $0.hasSuffix(" \(id)") }
            #expect(words == ["metrics \(id)", "complete \(id)"] && task.error != nil)
        }
        let calls = reader.words.all.filter { $0 != "invalid" }
        #expect(calls.count == 2 * count && reader.metrics.all.count == count)
        for metrics in reader.metrics.all {
            #expect(metrics.taskInterval.duration >= 0 && metrics.redirectCount == 0)
            if cause != .refusedConnection { #expect(metrics.transactionMetrics.count <= 1) }
        }
        session.invalidateAndCancel()
    }

    @Test(
        "a completion handler and the async form follow the metrics, also without a transaction",
        arguments: [Cause.noURL, .noScheme, .unsupportedScheme, .noHost, .badMethod, .refusedConnection],
        [false, true])
    func returns(_ cause: Cause, _ isAsync: Bool) async throws {
        let request = try cause.request()
        let reader = Reader()
        let session = URLSession(
            configuration: .ephemeral, delegate: isAsync ? nil : reader, delegateQueue: nil)
        if isAsync {
            await #expect(throws: URLError.self) { _ = try await session.data(for: request, delegate: reader) }
            reader.words.add("failed")
        } else {
            session.dataTask(with: request) { _, _, error in
                reader.words.add(error is URLError ? "failed" : "loaded")
            }.resume()
        }
        try await reader.words.wait { $0.contains { ["failed", "loaded"].contains($0) } }
        // The session's end comes after every call of the task.
        session.finishTasksAndInvalidate()
        try await reader.words.wait { isAsync || $0.contains("invalid") }
        let words = reader.words.all.compactMap { $0.split(separator: " ").first }
        let expected: [Substring] = isAsync ? ["metrics", "failed"] : ["metrics", "failed", "invalid"]
        #expect(words == expected)
    }
}
