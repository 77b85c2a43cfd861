// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoadingCompatibility

/// The calls to delegates before a response.
@Suite(.timeLimit(.minutes(4)))
struct WaitingRows {
    final class Hearer: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        let words = Box<String>(), done = Counter()
        func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
            words.add("waiting \(OperationQueue.current === session.delegateQueue)")
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
        ) {
            words.add("informational \(response.statusCode) \(OperationQueue.current === session.delegateQueue)")
        }
        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            words.add("response")
            completionHandler(.allow)
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            words.add("complete")
            done.add()
        }
    }

    @Test("interim responses are delivered before the response, on the delegate queue")
    func informational() async throws {
        try await withHTTPTestServer { origin in
            let hints = try #require(Status(103))
            let processing = try #require(Status(102))
            origin.route("/") { _ in .ok("").after(.init(hints), .init(processing)) }
            let delegate = Hearer()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            session.dataTask(with: origin.url()).resume()
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["informational 103 true", "informational 102 true", "response", "complete"])
            session.finishTasksAndInvalidate()
        }
    }

    @Test("waiting for a network is reported on the delegate queue, before all other calls")
    func waiting() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("") }
            let delegate = Hearer()
            let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
            let task = session.dataTask(with: origin.url())
            // Emits the event directly; the core's waiting is tested elsewhere.
            task.bridge?.emit(.waitingForConnectivity)
            try await delegate.words.wait { !$0.isEmpty }
            task.resume()
            await delegate.done.reaches(1)
            #expect(delegate.words.all == ["waiting true", "response", "complete"])
            session.finishTasksAndInvalidate()
        }
    }
}
