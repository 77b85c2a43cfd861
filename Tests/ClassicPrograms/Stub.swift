// SPDX-License-Identifier: Apache-2.0

// A stub: a URLProtocol in the place of the network, for tests of other code.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class Stub: URLProtocol {
    private static let lock = NSLock()
    private nonisolated(unsafe) static var count = 0
    static var stopped: Int { lock.withLock { count } }

    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "stub.test" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let client else { return }
        if url.path == "/error" { return client.urlProtocol(self, didFailWithError: URLError(.notConnectedToInternet)) }
        if url.path == "/for-ever" { return }
        let length = URLProtocol.property(forKey: "length", in: request) as? Int ?? 3
        guard
            let response = HTTPURLResponse(
                url: url, statusCode: 203, httpVersion: "HTTP/1.1", headerFields: ["Content-Type": "text/plain"])
        else { return }
        client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client.urlProtocol(self, didLoad: Data(repeating: 0x73, count: length))
        client.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {
        if request.url?.path == "/for-ever" { Stub.lock.withLock { Stub.count += 1 } }
    }
}

func runStub(_ origin: URL) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [Stub.self]
    let session = URLSession(configuration: configuration)
    let text = run(session, "https://stub.test/text")
    Check.that("data, as the stub has it", text.0 == Data("sss".utf8) && text.1 == 203, text.1 as Any)
    let failed = run(session, "https://stub.test/error")
    Check.that(
        "an error, as the stub has it", (failed.2 as? URLError)?.code == .notConnectedToInternet, failed.2 as Any)
    let other = run(session, origin.appendingPathComponent("text").absoluteString)
    Check.that("what the stub does not want goes to the network", other.0 == Data("hello".utf8))

    final class Box: @unchecked Sendable { var count = 0 }
    let box = Box()
    let done = Signal()
    session.downloadTask(with: URL(string: "https://stub.test/file")!) { url, _, _ in
        box.count = url.flatMap { try? Data(contentsOf: $0) }?.count ?? -1
        done.fire()
    }.resume()
    done.wait("a stubbed download")
    Check.that("a stubbed download is a file", box.count == 3, box.count)

    let stopped = Signal()
    let task = session.dataTask(with: URL(string: "https://stub.test/for-ever")!) { _, _, _ in stopped.fire() }
    let before = Stub.stopped
    task.resume()
    Thread.sleep(forTimeInterval: 0.05)
    task.cancel()
    stopped.wait("a cancelled stub")
    for _ in 0..<200 where Stub.stopped == before { Thread.sleep(forTimeInterval: 0.05) }
    Check.that("a cancelled stub is stopped", Stub.stopped == before + 1, Stub.stopped - before)

    _ = URLProtocol.registerClass(Stub.self)
    let shared = run(.shared, "http://stub.test/text")
    Check.that("registered, it serves the shared session", shared.0 == Data("sss".utf8), shared.2 as Any)
    URLProtocol.unregisterClass(Stub.self)
}

private func run(_ session: URLSession, _ url: String) -> (Data?, Int?, (any Error)?) {
    final class Box: @unchecked Sendable { var result: (Data?, Int?, (any Error)?) = (nil, nil, nil) }
    let box = Box()
    let done = Signal()
    session.dataTask(with: URL(string: url)!) { data, response, error in
        box.result = (data, (response as? HTTPURLResponse)?.statusCode, error)
        done.fire()
    }.resume()
    done.wait(url)
    return box.result
}
