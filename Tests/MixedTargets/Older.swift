// SPDX-License-Identifier: Apache-2.0

// A target that has not moved: it knows the toolchain's classes, and says what others need of them in words of
// Foundation.

import Foundation
import FoundationNetworking

public enum Older {
    /// Logs in, and returns the fields that the next caller must send.
    public static func login(_ url: URL) throws -> (url: URL, fields: [String: String]) {
        let (_, response) = try load(URLRequest(url: url))
        let cookie = (response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Set-Cookie") ?? ""
        return (
            url.deletingLastPathComponent().appendingPathComponent("cookies"),
            ["Cookie": String(cookie.prefix { $0 != ";" })]
        )
    }

    public static func load(_ url: URL, _ fields: [String: String]) throws -> Data {
        var request = URLRequest(url: url)
        request.allHTTPHeaderFields = fields
        return try load(request).0
    }

    private static func load(_ request: URLRequest) throws -> (Data, URLResponse) {
        let done = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var result: Result<(Data, URLResponse), any Error> = .failure(URLError(.unknown))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpShouldSetCookies = false
        let session = URLSession(configuration: configuration)
        session.dataTask(with: request) { data, response, error in
            if let data, let response {
                result = .success((data, response))
            } else {
                result = .failure(error ?? URLError(.unknown))
            }
            done.signal()
        }.resume()
        done.wait()
        session.finishTasksAndInvalidate()
        return try result.get()
    }
}
