// SPDX-License-Identifier: Apache-2.0

// libproxy, found at run time: the installed one, and a fake that answers as the test requires.

import Foundation
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

@Suite(.timeLimit(.minutes(4)))
struct ProxyLibraryTests {
    /// Answers from the URL's host: `direct.test`, `two.test`, `slow.test` (after a second), `fail.test` (nothing),
    /// `none.test` (an empty list).
    static let source = """
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        void *px_proxy_factory_new(void) { return malloc(1); }
        void px_proxy_factory_free(void *factory) { free(factory); }
        char **px_proxy_factory_get_proxies(void *factory, const char *url) {
            if (strstr(url, "fail")) return NULL;
            char **list = calloc(3, sizeof *list);
            if (strstr(url, "none")) return list;
            if (strstr(url, "slow")) sleep(1);
            if (strstr(url, "odd")) { list[0] = strdup("wpad://"); return list; }
            list[0] = strdup(
                strstr(url, "two") ? "http://proxy.test:3128"
                : strstr(url, "/path") ? "http://saw.the.path:1" : "direct://");
            if (strstr(url, "two")) list[1] = strdup("socks5://gate.test:1080");
            return list;
        }
        """

    static let hasCompiler = FileManager.default.isExecutableFile(atPath: "/usr/bin/cc")

    /// Compiles and opens the fake library.
    static func library(_ folder: TemporaryFolder) async throws -> ProxyLibrary {
        let (c, so) = (folder.path + "/fake.c", folder.path + "/fake.so")
        try Data(source.utf8).write(to: URL(fileURLWithPath: c))
        let built = try await Running.command("/usr/bin/cc", ["-shared", "-fPIC", "-o", so, c])
        try #require(built.code == 0, "\(built.errors)")
        return try #require(ProxyLibrary(so))
    }

    static func proxies(_ library: ProxyLibrary, _ url: String) async throws -> [String] {
        let load = LoadHandle(idle: nil, resource: nil)
        return try await DesktopProxies.chains(to: try Target(url).origin, load, library).map(\.description)
    }

    @Test("The library's proxies are used", .enabled(if: ProxyLibraryTests.hasCompiler, "no C compiler"))
    func answers() async throws {
        let folder = try TemporaryFolder()
        let library = try await Self.library(folder)
        #expect(try await Self.proxies(library, "http://direct.test/") == ["direct"])
        #expect(
            try await Self.proxies(library, "https://two.test/") == [
                "http://proxy.test:3128", "socks5h://gate.test:1080",
            ])
        // The library gets only the origin, and is not asked about this machine.
        #expect(try await Self.proxies(library, "http://a.test/path?secret") == ["direct"])
        #expect(try await Self.proxies(library, "http://localhost/two") == ["direct"])
        let error = await #expect(throws: LoadError.self) { try await Self.proxies(library, "http://odd.test/") }
        #expect(error?.reason == .badProxy)
    }

    /// An unreachable proxy service does not mean that there is no proxy.
    @Test(
        "A failure of the library is not a direct connection",
        .enabled(if: ProxyLibraryTests.hasCompiler, "no C compiler"))
    func aFailureIsNotADirectWay() async throws {
        let folder = try TemporaryFolder()
        let library = try await Self.library(folder)
        for host in ["fail.test", "none.test"] {
            let error = await #expect(throws: LoadError.self) { try await Self.proxies(library, "http://\(host)/") }
            #expect(error?.reason == .proxyResolutionFailed && error?.phase == .preparing && error?.party == .system)
            let load = LoadHandle(idle: nil, resource: nil)
            let proxies = try await DesktopProxies.chains(
                to: try Target("http://\(host)/").origin, fallback: [.direct], load, library)
            #expect(proxies == [.direct])
        }
    }

    /// A proxy script may take long; a stopped load does not wait for it.
    @Test("A stopped load does not wait for the library", .enabled(if: ProxyLibraryTests.hasCompiler, "no C compiler"))
    func aStopIsNotHeldUp() async throws {
        let folder = try TemporaryFolder()
        let library = try await Self.library(folder)
        let load = LoadHandle(idle: nil, resource: nil)
        let asking = Task { await library.proxies(for: "http://slow.test/", load) }
        try await Task.sleep(for: .milliseconds(50))
        load.stop(.cancelled)
        // A load that had waited would have an answer.
        #expect(await asking.value == nil)
    }

    @Test("Without a library there is no proxy") func noLibraryIsNoProxy() {
        #expect(ProxyLibrary("libno-such-thing.so.1") == nil)
        // Another library is not accepted.
        #expect(ProxyLibrary("libc.so.6") == nil)
    }

    /// The answer of the installed library is valid for any settings of this machine.
    @Test(
        "The installed library answers",
        .enabled(if: ProxyLibrary.shared != nil, "libproxy is not installed: script/setup --tests")) func theRealOne()
        async throws
    {
        let library = try #require(ProxyLibrary.shared)
        let proxies = try await Self.proxies(library, "http://www.example.org/")
        #expect(!proxies.isEmpty)
    }
}
