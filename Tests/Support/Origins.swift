// SPDX-License-Identifier: Apache-2.0

package import URLLoading
package import URLLoadingTesting
import URLLoadingWire

/// Runs an origin that answers every request for `/` with a text.
package nonisolated(nonsending) func withHTTPTestServer<R>(
    answering text: String, _ use: nonisolated(nonsending) (HTTPTestServer) async throws -> R
) async throws -> R {
    try await withHTTPTestServer { origin in
        origin.route("/") { _ in .ok(.bytes(Array(text.utf8))) }
        return try await use(origin)
    }
}

/// Runs an origin with routes that several tests share.
package nonisolated(nonsending) func withHTTPTestServer<R>(
    serving addRoutes: (HTTPTestServer) throws -> Void,
    _ use: nonisolated(nonsending) (HTTPTestServer) async throws -> R
) async throws -> R {
    try await withHTTPTestServer { origin in
        try addRoutes(origin)
        return try await use(origin)
    }
}

extension Configuration {
    /// Returns a copy with changes.
    package func with(_ change: (inout Configuration) throws -> Void) rethrows -> Configuration {
        var configuration = self
        try change(&configuration)
        return configuration
    }
}

extension HTTPTestServer {
    /// Adds a route for each use of a decision, and of the delegate method that corresponds to it: a login, a file
    /// chosen by type, a body made on demand, a response that is not stored, a redirect that is not followed.
    package func routeDecisions() {
        route("/locked") { request in
            guard request.headers[.authorization] != nil else {
                return .status(
                    .unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"r\""], body: .bytes(Array("no".utf8)))
            }
            return .ok("in")
        }
        route("/image") { _ in .ok("png", headers: [.contentType: "image/png"]) }
        route("/page") { _ in .ok("html", headers: [.contentType: "text/html"]) }
        route("/count") { .ok("\($0.bodyCount)") }
        route("/kept") { _ in .ok("kept", headers: [.cacheControl: "max-age=60"]) }
        route("/from") { _ in .redirect("/page") }
    }
}
