// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingCTestHome
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// `Configuration.storageDirectory`: one folder for all stores of a session.
@Suite(.timeLimit(.minutes(4)))
struct StorageDirectoryTests {
    @Test("a default session of the tests stores nothing in the user's home")
    func home() throws {
        let home = try #require(urlloading_test_home().map { String(cString: $0) })
        for folder in [StorageFolders.cache, StorageFolders.state] { #expect(folder.hasPrefix(home + "/")) }
        #expect(Configuration.default.caching.store?.directory?.path().hasPrefix(home + "/") == true)
    }

    private func configuration(_ folder: URL) -> Configuration {
        var configuration = Configuration.default
        configuration.storageDirectory = folder
        return configuration
    }

    @Test(
        "the state of a session's directory is available to the next session, and to no other directory (checklist 2)")
    func kept() async throws {
        try await withTemporaryURL("kept", isDirectory: true) { folder in
            try await withHTTPTestServer { origin in
                origin.route("/") { request in
                    guard request.headers.contains(.authorization) else {
                        return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"x\""])
                    }
                    return .ok("secret", headers: [.setCookie: "a=1; Max-Age=600"])
                }
                origin.route("/page") { _ in .ok("page", headers: [.cacheControl: "max-age=600"]) }
                var decisions = Decisions()
                decisions.challenge = Decision { _ in
                    .use(Credential(user: "u", password: "p", persistence: .permanent))
                }
                try await withSession(configuration(folder), decisions: decisions) { session in
                    try await session.expect(origin.url("/page"), "page")
                    try await session.expect(origin.url("/"), "secret")
                    #expect(session.cookies?.all.count == 1)
                    await session.cookies?.flush()
                    session.configuration.caching.store?.flush()
                }
                #expect(
                    Set(filesUnder(folder).keys).isSuperset(of: ["cache.sqlite", "cookies.sqlite", "credentials.json"]))
                // No credential decision is called any more.
                try await withSession(configuration(folder)) { session in
                    #expect(
                        session.cookies !== CookieStore.shared
                            && session.configuration.caching.store !== ResponseCache.shared)
                    try await session.expect(origin.url("/"), "secret")
                    #expect(session.cookies?.all.count == 1)
                    let requests = origin.counts.requests
                    var offline = Request(url: origin.url("/page"))
                    offline.cachePolicy = .onlyIfCached
                    try await session.expect(offline, "page")
                    #expect(origin.counts.requests == requests)
                }
            }
        }
    }

    @Test("sessions of one directory share its stores; explicit or ephemeral ones are not stored there")
    func shared() async throws {
        withTemporaryURL("kept", isDirectory: true) { folder in
            let one = Session(configuration(folder))
            let two = Session(configuration(folder))
            #expect(one.cookies === two.cookies && one.hsts === two.hsts)
            #expect(one.configuration.caching.store === two.configuration.caching.store)
            var own = configuration(folder)
            let store = CookieStore()
            let cache = ResponseCache()
            (own.cookies.storage, own.caching.store) = (.store(store), cache)
            let third = Session(own)
            #expect(third.cookies === store && third.configuration.caching.store === cache)
            own.caching.store = nil
            let fourth = Session(own)
            #expect(fourth.configuration.caching.store == nil)
            var ephemeral = Configuration.ephemeral
            ephemeral.storageDirectory = folder
            let fifth = Session(ephemeral)
            #expect(fifth.cookies !== one.cookies)
            for session in [one, two, third, fourth, fifth] { session.invalidateAndCancel() }
            #expect(filesUnder(folder).isEmpty)
        }
    }

    @Test("a directory that cannot be had costs persistence alone, and the stores say so")
    func unusable() async throws {
        try await withTemporaryURL("kept", isDirectory: true) { folder in
            try Data("a file".utf8).write(
                to: URL(
                    filePath: folder.plainPath.hasSuffix("/") ? String(folder.plainPath.dropLast()) : folder.plainPath))
            try await withHTTPTestServer { origin in
                origin.route("/") { _ in
                    .ok("a", headers: [.setCookie: "a=1; Max-Age=600", .cacheControl: "max-age=600"])
                }
                try await withSession(configuration(folder)) { session in
                    try await session.expect(origin.url("/"), "a")
                    try await session.expect(origin.url("/"), "a")
                    await session.cookies?.flush()
                    session.configuration.caching.store?.flush()
                    #expect(session.cookies?.all.count == 1 && session.cookies?.problem != nil)
                    #expect(session.configuration.caching.store?.problem != nil)
                }
            }
        }
    }
}
