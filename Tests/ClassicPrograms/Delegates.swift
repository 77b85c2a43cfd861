// SPDX-License-Identifier: Apache-2.0

// A client with a delegate: redirects, dispositions, the order of calls, and what it hears of errors.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class Listener: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    var calls: [String] = []
    var body = Data()
    var followsRedirects = true
    var disposition = URLSession.ResponseDisposition.allow
    var error: (any Error)?
    let done = Signal()
    let invalid = Signal()

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        calls.append("redirect \(response.statusCode)")
        completionHandler(followsRedirects ? request : nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        calls.append("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        completionHandler(disposition)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if calls.last != "data" { calls.append("data") }
        body.append(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        calls.append("metrics \(metrics.transactionMetrics.count)")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        calls.append("complete")
        self.error = error
        done.fire()
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        calls.append("invalid")
        invalid.fire()
    }
}

func runDelegates(_ origin: URL) {
    let followed = load(origin.appendingPathComponent("redirect"))
    Check.that(
        "the order of calls",
        followed.calls == ["redirect 302", "response 200", "data", "metrics 2", "complete", "invalid"], followed.calls)
    Check.that("the body", followed.body == Data("hello".utf8))

    let stayed = load(origin.appendingPathComponent("redirect")) { $0.followsRedirects = false }
    Check.that(
        "a redirect refused is the response", stayed.calls.contains("response 302") && stayed.error == nil, stayed.calls
    )

    let refused = load(origin.appendingPathComponent("text")) { $0.disposition = .cancel }
    Check.that(
        "a response refused ends the task", (refused.error as? URLError)?.code == .cancelled && refused.body.isEmpty,
        refused.calls)

    let lost = load(origin.appendingPathComponent("cut"))
    Check.that(
        "half an answer is an error", (lost.error as? URLError)?.code == .networkConnectionLost, lost.error as Any)

    let elsewhere = load(origin.appendingPathComponent("elsewhere")) { _ in
    } request: {
        $0.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
    }
    Check.that(
        "a secret stays with its origin", elsewhere.body == Data("none".utf8),
        String(decoding: elsewhere.body, as: UTF8.self))
}

private func load(
    _ url: URL, _ setUp: (Listener) -> Void = { _ in }, request change: (inout URLRequest) -> Void = { _ in }
) -> Listener {
    let listener = Listener()
    setUp(listener)
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let session = URLSession(configuration: .ephemeral, delegate: listener, delegateQueue: queue)
    var request = URLRequest(url: url)
    change(&request)
    session.dataTask(with: request).resume()
    if listener.done.wait(url.lastPathComponent) {
        session.finishTasksAndInvalidate()
        listener.invalid.wait("invalidation")
    }
    return listener
}
