// SPDX-License-Identifier: Apache-2.0

// The examples of docs/guides/cookies.md, compiled and run. A change must be made in both places.

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

@Suite(.timeLimit(.minutes(4)))
struct CookiesGuideTests {
    @Test("the example of cookie settings") func whose() throws {
        let folder = try TemporaryFolder().url("state")
        var configuration = Configuration.default
        configuration.cookies.storage = .store(CookieStore())
        configuration.cookies.storage = .store(CookieStore(directory: folder))
        configuration.cookies.storage = .none
        #expect(Session(configuration).cookies == nil)
    }

    @Test("the example of reading cookies") func looking() async throws {
        let url = try url("https://example.org/")
        let anHourAgo = Date.now - 3600
        let store = CookieStore()
        var changes = store.changes.makeAsyncIterator()
        if let cookie = Cookie(name: "theme", value: "dark", domain: "example.org", expires: .now + 86400) {
            store.set(cookie)
        }
        for cookie in store.cookies(for: url) { #expect("\(cookie)" == "theme=… example.org/") }
        #expect(await changes.next() == .cookies && store.all.count == 1)
        store.removeAll(since: anHourAgo)
        #expect(store.cookies(for: url).isEmpty)
    }

    @Test("the example of a logout") func loggingOut() async throws {
        let store = CookieStore()
        if let cookie = Cookie(name: "sid", value: "1", domain: "example.org") { store.set(cookie) }
        var configuration = Configuration.ephemeral
        configuration.cookies.storage = .store(store)
        configuration.authentication.credentialStore = CredentialStore()
        let session = Session(configuration)
        store.removeAll()
        session.configuration.caching.store?.removeAll()
        session.configuration.authentication.credentialStore?.removeAll()
        #expect(store.all.isEmpty)
    }

    @Test("the example of cookie policies") func policy() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { .ok($0.headers[.cookie] ?? "none", headers: ["Set-Cookie": "a=1"]) }
            let (url, page) = (origin.url(), try url("https://example.org/page"))
            let store = CookieStore()
            store.acceptPolicy = .onlyFromMainDocument
            var configuration = Configuration.default
            configuration.cookies.storage = .store(store)
            let session = Session(configuration)
            var request = Request(url: url)
            request.handlesCookies = false
            try await session.expect(request, "none")
            request.handlesCookies = true
            request.mainDocumentURL = page
            try await session.expect(request, "none")
            #expect(store.all.isEmpty)
            request.mainDocumentURL = nil
            try await session.expect(request, "none")
            try await session.expect(request, "a=1")
            configuration.cookies.acceptPolicy = .never
            configuration.cookies.sendsCookies = false
            try await Session(configuration).expect(url, "none")
        }
    }

    @Test("the example of cookie files") func files() throws {
        let folder = try TemporaryFolder()
        let file = folder.url("cookies.txt")
        let store = CookieStore()
        store.set(["Set-Cookie": "a=1"], from: try url("https://example.org/"))
        try Data(store.netscapeText.utf8).write(to: file)
        let other = CookieStore()
        other.set(netscapeText: try String(contentsOf: file, encoding: .utf8))
        #expect(other.netscapeText == store.netscapeText)
        try FileManager.default.removeItem(at: file)
    }

    @Test("the example of HSTS") func strictTransport() throws {
        var configuration = Configuration.ephemeral
        configuration.hsts.storage = .store(HSTSStore())
        let session = Session(configuration)
        let url = try url("http://example.org/")
        #expect(session.hsts?.requiresTLS(url) == false)
        configuration.hsts.storage = .none
        #expect(Session(configuration).hsts == nil)
    }
}
