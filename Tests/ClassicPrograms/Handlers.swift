// SPDX-License-Identifier: Apache-2.0

// Completion handlers: data, uploads, cookies, time-outs, cancellation.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class Box<Value>: @unchecked Sendable {
    var value: Value
    init(_ value: Value) { self.value = value }
}

private func fetch(
    _ request: URLRequest, in session: URLSession = .shared, then: (URLSessionDataTask) -> Void = { _ in }
) -> (Data?, HTTPURLResponse?, URLError?) {
    let result = Box<(Data?, HTTPURLResponse?, URLError?)>((nil, nil, nil))
    let done = Signal()
    let task = session.dataTask(with: request) { data, response, error in
        result.value = (data, response as? HTTPURLResponse, error as? URLError)
        done.fire()
    }
    task.resume()
    then(task)
    done.wait(request.url?.path ?? "")
    return result.value
}

func runHandlers(_ origin: URL) {
    let (data, response, _) = fetch(URLRequest(url: origin.appendingPathComponent("text")))
    Check.that("a body and its response", data == Data("hello".utf8) && response?.statusCode == 200)
    Check.that("fields by any case", response?.value(forHTTPHeaderField: "content-TYPE") == "text/plain")

    var post = URLRequest(url: origin.appendingPathComponent("echo"))
    post.httpMethod = "POST"
    post.httpBodyStream = InputStream(data: Data(repeating: 0x61, count: 300_000))
    let (echo, _, _) = fetch(post)
    Check.that("a body from a stream", echo?.count == 300_000, echo?.count as Any)

    let limited = URLSessionConfiguration.ephemeral
    limited.timeoutIntervalForRequest = 0.3
    let session = URLSession(configuration: limited)
    let (_, _, late) = fetch(URLRequest(url: origin.appendingPathComponent("silent")), in: session)
    Check.that("a time-out below one second", late?.code == .timedOut, late as Any)

    let (_, _, cancelled) = fetch(URLRequest(url: origin.appendingPathComponent("silent"))) { $0.cancel() }
    Check.that("a cancelled task says so", cancelled?.code == .cancelled, cancelled as Any)

    let cookies = URLSession(configuration: .ephemeral)
    _ = fetch(URLRequest(url: origin.appendingPathComponent("set-cookie")), in: cookies)
    let (sent, _, _) = fetch(URLRequest(url: origin.appendingPathComponent("cookies")), in: cookies)
    Check.that(
        "a cookie comes back", sent == Data("taste=sweet".utf8), sent.map { String(decoding: $0, as: UTF8.self) } as Any
    )

    let (_, _, unsupported) = fetch(URLRequest(url: URL(string: "nothing://here")!))
    Check.that("an unsupported scheme", unsupported?.code == .unsupportedURL, unsupported as Any)
    let many = Box(0)
    let all = DispatchGroup()
    let lock = NSLock()
    for _ in 0..<200 {
        all.enter()
        URLSession.shared.dataTask(with: origin.appendingPathComponent("text")) { data, _, _ in
            lock.lock()
            if data == Data("hello".utf8) { many.value += 1 }
            lock.unlock()
            all.leave()
        }.resume()
    }
    Check.that("200 loads at once", all.wait(timeout: .now() + 20) == .success && many.value == 200, many.value)
}
