// SPDX-License-Identifier: Apache-2.0

// A target that has moved, in the same program: the same class names, of the layer.

import Foundation
import URLLoadingCompatibility

public enum Newer {
    public static func load(_ url: URL, _ fields: [String: String]) throws -> Data {
        var request = URLRequest(url: url)
        request.allHTTPHeaderFields = fields
        let done = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var result: Result<Data, any Error> = .failure(URLError(.unknown))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpShouldSetCookies = false
        let session = URLSession(configuration: configuration)
        session.dataTask(with: request) { data, _, error in
            if let data { result = .success(data) } else { result = .failure(error ?? URLError(.unknown)) }
            done.signal()
        }.resume()
        done.wait()
        session.finishTasksAndInvalidate()
        return try result.get()
    }

    /// Whose classes these are.
    public static var request: String { String(reflecting: URLRequest.self) }
}
