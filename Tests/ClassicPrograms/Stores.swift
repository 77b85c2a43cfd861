// SPDX-License-Identifier: Apache-2.0

// A program that keeps things: responses, cookies, credentials, by hand.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

func runStores(_ origin: URL) {
    responses()
    cookies()
    credentials()
    login(origin)
}

private func responses() {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("stores-\(UUID())")
    try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 16 << 20, diskPath: folder.path)
    let url = URL(string: "http://example.org/page")!
    let request = URLRequest(url: url)
    func entry(_ text: String) -> CachedURLResponse {
        let response = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: nil, headerFields: ["Content-Type": "text/plain"])!
        return CachedURLResponse(response: response, data: Data(text.utf8))
    }
    cache.storeCachedResponse(entry("old"), for: request)
    let found = cache.cachedResponse(for: request)
    Check.that("what is found is what was stored", found == entry("old"), found?.response.expectedContentLength as Any)
    Thread.sleep(forTimeInterval: 0.5)
    let between = Date()
    cache.storeCachedResponse(entry("new"), for: request)
    cache.removeCachedResponses(since: between)
    let back = cache.cachedResponse(for: request)
    Check.that(
        "what was replaced is not back when the newer one is removed", back == nil,
        back.map { String(decoding: $0.data, as: UTF8.self) } as Any)
}

private func cookies() {
    let pair = "theme=dark".split(separator: "=")
    let cookie = HTTPCookie(properties: [.name: pair[0], .value: pair[1], .domain: "example.org", .path: "/"])
    Check.that("a cookie of parts of a string", cookie?.name == "theme" && cookie?.value == "dark")
    for joint in [",", ", ", ",\n"] {
        let field = "a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT; Path=/x\(joint)b=2"
        let cookies = HTTPCookie.cookies(
            withResponseHeaderFields: ["Set-Cookie": field], for: URL(string: "http://example.org/")!)
        Check.that(
            "two cookies joined by \(joint.debugDescription)",
            cookies.map { "\($0.name)=\($0.value)" } == ["a=1", "b=2"], cookies)
    }
}

private func credentials() {
    final class Box: @unchecked Sendable { var count = 0 }
    let box = Box()
    let storage = URLCredentialStorage.shared
    let observer = NotificationCenter.default.addObserver(
        forName: .NSURLCredentialStorageChanged, object: storage, queue: nil
    ) { _ in box.count += 1 }
    defer { NotificationCenter.default.removeObserver(observer) }
    let space = URLProtectionSpace(
        host: "example.org", port: 80, protocol: "http", realm: "door",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    let ada = URLCredential(user: "ada", password: "p", persistence: .forSession)
    let bob = URLCredential(user: "bob", password: "p", persistence: .forSession)
    storage.set(bob, for: space)
    storage.set(bob, for: space)
    storage.setDefaultCredential(ada, for: space)
    storage.setDefaultCredential(ada, for: space)
    Check.that("a notification for each change", box.count == 2, box.count)
    storage.remove(ada, for: space)
    storage.remove(ada, for: space)
    Check.that("and for a removal", box.count == 3, box.count)
    Check.that(
        "a removed default has no substitute", storage.defaultCredential(for: space) == nil,
        storage.defaultCredential(for: space)?.user as Any)
    storage.remove(bob, for: space)
}

private func login(_ origin: URL) {
    final class Box: @unchecked Sendable { var text = "" }
    let box = Box()
    let done = Signal()
    let configuration = URLSessionConfiguration.ephemeral
    let host = URLProtectionSpace(
        host: origin.host!, port: origin.port!, protocol: "http", realm: nil,
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    configuration.urlCredentialStorage?.setDefaultCredential(
        URLCredential(user: "user", password: "pass", persistence: .forSession), for: host)
    URLSession(configuration: configuration).dataTask(with: origin.appendingPathComponent("no-realm")) { data, _, _ in
        box.text = String(decoding: data ?? Data(), as: UTF8.self)
        done.fire()
    }.resume()
    done.wait("a login without a realm")
    Check.that("a challenge without a realm finds the host's credential", box.text == "welcome", box.text)
}
