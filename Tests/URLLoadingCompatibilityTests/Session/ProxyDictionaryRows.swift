// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingCompatibility
import URLLoadingTesting

/// Proxies from the classic API's dictionary.
@Suite(.timeLimit(.minutes(4)))
struct ProxyDictionaryRows {
    static func text(_ dictionary: [AnyHashable: Any]?, _ url: String) async throws -> String {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = dictionary
        let session = URLLoadingCompatibility.URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: url))
        let data: Data = try await withCheckedThrowingContinuation { continuation in
            session.dataTask(with: url) { data, _, error in
                continuation.resume(with: error.map { .failure($0) } ?? .success(data ?? Data()))
            }.resume()
        }
        return String(decoding: data, as: UTF8.self)
    }

    static func expectHere(_ dictionary: [AnyHashable: Any]?, _ url: String) async throws {
        let text = try await text(dictionary, url)
        #expect(text == "here")
    }

    static func expectError(_ dictionary: [AnyHashable: Any]?, _ url: String) async {
        let text = try? await text(dictionary, url)
        #expect(text == nil)
    }

    @Test func `a proxy dictionary replaces the system's proxies (checklist 24)`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("here") }
            let target = "http://origin.test:\(origin.port)/"
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                let own: [AnyHashable: Any] = [
                    "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(proxy.port), "kCFProxyUsernameKey": "u",
                    "kCFProxyPasswordKey": "pw",
                    "ExceptionsList": ["127.0.0.1"],
                ]
                try await Self.expectHere(own, target)
                #expect(proxy.requests.map(\.target) == [target])
                try await Self.expectHere(own, origin.url().absoluteString)
                try await Self.expectHere([:], origin.url().absoluteString)
                #expect(proxy.requests.count == 1)
                await Self.expectError(["HTTPEnable": true, "HTTPProxy": "a b"], target)
                await Self.expectError(
                    ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": Int(proxy.port)], "https://origin.test/")
                #expect(proxy.requests.last?.method == "CONNECT")
            }
            try await withTestProxy(.init(.socks)) { proxy in
                try await Self.expectHere(
                    ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": Int(proxy.port)], target)
                #expect(proxy.requests.map(\.target) == ["origin.test:\(origin.port)"])
            }
        }
    }

    @available(*, deprecated)
    @Test func `pipelining can be requested, and has no effect (checklist 26)`() {
        let configuration = URLSessionConfiguration.default
        #expect(!configuration.httpShouldUsePipelining)
        configuration.httpShouldUsePipelining = true
        #expect(configuration.httpShouldUsePipelining)
        #expect((configuration.copy() as? URLSessionConfiguration)?.httpShouldUsePipelining == true)
    }
}
