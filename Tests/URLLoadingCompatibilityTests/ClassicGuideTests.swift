// The examples of docs/guides/classic.md, compiled and run. Whoever changes one of them changes it here too.

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTesting

@Suite(.timeLimit(.minutes(1)))
struct ClassicGuideTests {
    final class Download: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        private var body = Data()
        let whenDone: @Sendable (Data, (any Error)?) -> Void
        init(whenDone: @escaping @Sendable (Data, (any Error)?) -> Void) { self.whenDone = whenDone }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            body.append(data)
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            whenDone(body, error)
        }
    }

    @Test("guide: a delegate that collects")
    func delegate() async throws {
        try await withTestOrigin { origin in
            origin.route("/") { _ in .ok("hello") }
            let url = origin.url()
            let results = Box<(Data, (any Error)?)>(), done = Counter()
            let download = Download {
                results.add(($0, $1))
                done.add()
            }
            let session = URLSession(configuration: .default, delegate: download, delegateQueue: nil)
            session.dataTask(with: url).resume()
            session.finishTasksAndInvalidate()
            await done.reaches(1)
            #expect(results.all.first?.0 == Data("hello".utf8) && results.all.first?.1 == nil)
        }
    }

    @Test("URLSession, URLRequest, URLSessionConfiguration: the examples of their comments; the error beneath")
    func comments() async throws {
        try await withTestOrigin { origin in
            origin.route("/") { .ok("\($0.method) \($0.bodyCount)") }
            let url = origin.url()
            let shown = Box<Data>(), done = Counter()
            let task = URLSession.shared.dataTask(with: url) { data, response, error in
                defer { done.add() }
                guard let data, (response as? HTTPURLResponse)?.statusCode == 200 else { return }
                shown.add(data)
            }
            task.resume()
            await done.reaches(1)
            #expect(shown.all == [Data("GET 0".utf8)])

            var request = URLRequest(url: url, timeoutInterval: 10)
            request.httpMethod = "POST"
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data("{}".utf8)
            let configuration = URLSessionConfiguration.default
            configuration.timeoutIntervalForRequest = 10
            configuration.httpAdditionalHeaders = ["Accept-Language": "de"]
            let session = URLSession(configuration: configuration)
            let posted = await session.result(request)
            #expect(posted.data == Data("POST 2".utf8))

            let error: (any Error)? = await session.result(URLRequest(url: try #require(URL(string: "gopher://a.example/")))).error
            let beneath = (error as? URLError)?.userInfo[NSUnderlyingErrorKey] as? LoadError
            #expect(beneath?.reason == .unsupportedScheme)
            session.invalidateAndCancel()
        }
    }
}
