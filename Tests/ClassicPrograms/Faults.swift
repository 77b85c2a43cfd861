// SPDX-License-Identifier: Apache-2.0

// A client that reports how its tasks end: tasks that cannot begin, a session that ends with tasks in it, a damaged
// body, a password that cannot be sent, a redirect to nowhere.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class Reporter: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    var calls: [String] = []
    var error: (any Error)?
    let user: String
    let done = Signal()
    let invalid = Signal()

    init(user: String) { self.user = user }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        calls.append("redirect")
        var nowhere = request
        nowhere.url = nil
        completionHandler(nowhere)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        calls.append("challenge")
        guard challenge.previousFailureCount == 0 else { return completionHandler(.performDefaultHandling, nil) }
        completionHandler(.useCredential, URLCredential(user: user, password: "pass", persistence: .none))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        calls.append("metrics")
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

private func report(_ request: URLRequest, user: String = "user") -> Reporter {
    let reporter = Reporter(user: user)
    let session = URLSession(configuration: .ephemeral, delegate: reporter, delegateQueue: nil)
    session.dataTask(with: request).resume()
    if reporter.done.wait(request.url?.absoluteString ?? "a request without a URL") {
        // The last call of the session: no call of the task comes after it.
        session.finishTasksAndInvalidate()
        reporter.invalid.wait("invalidation")
    }
    return reporter
}

func runFaults(_ origin: URL) {
    beginnings(origin)
    lists(origin)

    let damaged = report(URLRequest(url: origin.appendingPathComponent("damaged")))
    Check.that(
        "a damaged gzip body has an error of its own", (damaged.error as? URLError)?.code == .cannotDecodeRawData,
        damaged.error as Any)

    let colon = report(URLRequest(url: origin.appendingPathComponent("basic")), user: "us:er")
    Check.that(
        "a user name with a colon, which Basic cannot send, ends the task",
        (colon.error as? URLError)?.code == .userAuthenticationRequired, colon.error as Any)
    Check.that("after one question", colon.calls.filter { $0 == "challenge" }.count == 1, colon.calls)

    // Last: where such a request ends the process, the lines above are written already.
    let nowhere = report(URLRequest(url: origin.appendingPathComponent("redirect")))
    Check.that(
        "a redirect to a request without a URL", (nowhere.error as? URLError)?.code == .unsupportedURL,
        nowhere.error as Any)
}

private func beginnings(_ origin: URL) {
    var withoutURL = URLRequest(url: origin)
    withoutURL.url = nil
    Check.that("a request without a URL says so", withoutURL.description == "url: nil", withoutURL.description)
    for (what, request) in [
        ("a request without a URL", withoutURL), ("a URL without a scheme", URLRequest(url: URL(string: "page")!)),
        ("an unsupported scheme", URLRequest(url: URL(string: "gopher://example.org/")!)),
        ("a URL without a host", URLRequest(url: URL(string: "http:///page")!)),
    ] {
        let failed = report(request)
        Check.that("\(what) is an error", failed.error is URLError, failed.error as Any)
        Check.that(
            "\(what) has metrics, then its end, once each", failed.calls == ["metrics", "complete", "invalid"],
            failed.calls)
    }
}

/// What a session lists directly after its end.
private func lists(_ origin: URL) {
    final class Box: @unchecked Sendable {
        var before: Int?
        var after: Int?
    }
    let box = Box()
    let listed = Signal()
    let session = URLSession(configuration: .ephemeral)
    let running = session.dataTask(with: origin.appendingPathComponent("silent"))
    let resting = session.downloadTask(with: origin.appendingPathComponent("text"))
    running.resume()
    session.getAllTasks { tasks in
        box.before = tasks.count
        listed.fire()
    }
    listed.wait("the list of a session")
    session.invalidateAndCancel()
    resting.resume()
    session.getAllTasks { tasks in
        box.after = tasks.count
        listed.fire()
    }
    listed.wait("the list of an invalid session")
    Check.that("a session lists a running task", (box.before ?? 0) > 0, box.before as Any)
    Check.that("an invalid session lists none, resumed or not", box.after == 0, box.after as Any)
}
