// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoading

/// The values of OpenTelemetry's semantic conventions for HTTP clients.
enum HTTPConventions {
    /// The attributes of one request that are the same for each of its attempts.
    static func attributes(of request: Request) -> [String: String] {
        [
            // Each value is a series of its own in a back end of metrics: methods that are not registered share one.
            "http.request.method": methods.contains(request.method) ? request.method.rawValue : "_OTHER",
            "server.address": request.url.host() ?? "",
            "server.port": "\(request.url.port ?? (request.url.scheme?.lowercased() == "https" ? 443 : 80))",
        ]
    }
    private static let methods: Set<Method> = [
        .get, .head, .post, .put, .delete, .connect, .options, .trace, .patch, .query,
    ]

    /// The result of an exchange with a server: the status, the protocol, and the class of an error.
    static func attributes(of transaction: LoadMetrics.Transaction) -> [String: String] {
        let status = transaction.response?.http?.status.code
        var attributes: [String: String] = [:]
        attributes["http.response.status_code"] = status.map(String.init)
        attributes["error.type"] = transaction.error?.reason.name ?? status.flatMap { $0 < 400 ? nil : "\($0)" }
        attributes["network.protocol.version"] =
            switch transaction.protocolName {
            case "http/1.0": "1.0"
            case "http/1.1": "1.1"
            case "h2": "2"
            default: nil
            }
        return attributes
    }
}
