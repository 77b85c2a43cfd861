// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Loads through proxies: the data that each party sees, and the failures of routes.
@Suite struct ProxyRows {
    /// These sessions resolve no names: their resolver records names and returns no address.
    static func client(_ policy: ProxyPolicy, _ base: Configuration = .ephemeral) -> (Configuration, RecordingResolver)
    {
        let resolver = RecordingResolver(.failure(IOFailure(.hostNotFound("looked up here"), .resolve)))
        var configuration = base
        configuration.networks.proxyPolicy = policy
        configuration.networks.resolver = resolver
        return (configuration, resolver)
    }

    static let secrets: Headers = [.authorization: "Bearer ORIGIN", .cookie: "a=ORIGIN", "X-Own": "ORIGIN"]

    // MARK: HTTP

    @Test func `plain http requests have the whole URL (checklist 24, security 5)`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/a") { _ in .ok("here") }
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                let (configuration, resolver) = Self.client(.fixed([try proxy.address(user: "u", password: "pw")]))
                let session = Session(configuration)
                var request = Request(url: try url("http://user:pass@origin.test:\(origin.port)/a?b=c#d"))
                request.headers = Self.secrets
                request.headers["Proxy-Connection"] = "keep-alive"
                try await session.expect(request, "here")
                let asked = try #require(proxy.requests.first)
                #expect(asked.method == "GET" && asked.target == "http://origin.test:\(origin.port)/a?b=c")
                #expect(
                    asked.headers[.host] == "origin.test:\(origin.port)" && asked.headers["Proxy-Connection"] == nil)
                #expect(asked.headers[.proxyAuthorization] == "Basic " + Data("u:pw".utf8).base64EncodedString())
                // The test proxy removes these fields as it should; the recorded ones are above.
                #expect(origin.requests.first?.headers["X-Own"] == "ORIGIN")
                #expect(resolver.asked.isEmpty)
                // Kept connections are told apart by their routes.
                try await session.expect(request, "here")
                #expect(proxy.connections == 1 && proxy.requests.count == 2)
                #expect(
                    session.connectionsDescription.contains("through http://127.0.0.1")
                        && !session.connectionsDescription.contains("pw"))
            }
        }
    }

    @Test func `one connection to a proxy carries requests to every origin`() async throws {
        try await withHTTPTestServer { first in
            try await withHTTPTestServer { second in
                for origin in [first, second] { origin.route("/") { _ in .ok("here") } }
                try await withTestProxy { proxy in
                    let session = Session(Self.client(.fixed([try proxy.address()])).0)
                    for origin in [first, second, first] {
                        try await session.expect(try url("http://origin.test:\(origin.port)/"), "here")
                    }
                    #expect(proxy.connections == 1 && proxy.requests.count == 3)
                    await expectEmpty(session)
                }
            }
        }
    }

    @Test func `the test proxy stores no response and no cookie, and adds no Accept`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("here", headers: [.cacheControl: "max-age=60", .setCookie: "id=1"]) }
            try await withTestProxy { proxy in
                var configuration = Self.client(.fixed([try proxy.address()])).0
                configuration.caching.usesMemoryStore = false
                configuration.cookies.storage = .none
                configuration.accept = nil
                let session = Session(configuration)
                for _ in 0..<2 { try await session.expect(try url("http://origin.test:\(origin.port)/"), "here") }
                #expect(origin.requests.count == 2)
                #expect(origin.requests.allSatisfy { $0.headers[.cookie] == nil && $0.headers[.accept] == nil })
                await expectEmpty(session)
            }
        }
    }

    @Test func `the test proxy forwards any number of requests at once`() async throws {
        try await withHTTPTestServer { origin in
            let together = Latch()
            let arrived = Lock(0)
            let count = 12
            origin.route("/") { _ in
                let isLast = arrived.withLock { number in
                    number += 1
                    return number == count
                }
                if isLast { together.open() }
                await together.wait()
                return .ok("here")
            }
            try await withTestProxy { proxy in
                var configuration = Self.client(.fixed([try proxy.address()])).0
                configuration.connections.maximumPerHost = count
                let session = Session(configuration)
                let target = try url("http://origin.test:\(origin.port)/")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<count { group.addTask { try await session.expect(target, "here") } }
                    try await group.waitForAll()
                }
                await expectEmpty(session)
            }
        }
    }

    @Test func `a proxy may listen on a Unix socket`() async throws {
        let path = AddressRows.socketPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withHTTPTestServer(.init(address: .unix(path))) { proxy in
            proxy.route("*") { _ in .ok("forwarded") }
            for address in [
                try Proxy(.http, unixSocket: path, user: "u", password: "pw"),
                try Proxy("http://u:pw@localhost\(path)"),
            ] {
                try await Session(Self.client(.fixed([address])).0).expect(try url("http://origin.test/a"), "forwarded")
                #expect(
                    proxy.requests.last?.headers[.proxyAuthorization] == "Basic "
                        + Data("u:pw".utf8).base64EncodedString())
                #expect(
                    proxy.requests.last?.headers[.host] == "origin.test"
                        && address.description == "http://localhost\(path)")
            }
            let second = try Proxy(.http, unixSocket: path)
            await expectFailure(.badProxy) {
                try await Session(Self.client(.fixed([try Proxy("p.test"), second])).0).data(
                    from: try url("http://a.test/"))
            }
        }
        let gone = Session(Self.client(.fixed([try Proxy(.socks5, unixSocket: path + ".gone")])).0)
        let error = await failure(.connectionRefused) { try await gone.data(from: try url("http://a.test/")) }
        #expect(error?.proxyFailure != nil)
        #expect(error?.detail?.hasSuffix(": the socket file \(path).gone does not exist") == true, "\(error as Any)")
    }

    @Test func `no fields of the origin reach the proxy through CONNECT, and none the reverse (security 5, 6)`()
        async throws
    {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/") { _ in .ok("secret") }
            try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
                var (configuration, resolver) = Self.client(
                    .fixed([try proxy.address(user: "u", password: "pw")]), base)
                configuration.headers = ["X-Session": "ORIGIN"]
                let made = Lock<[String]>([])
                configuration.wireTap = { if case .connected(let text, _) = $0 { made.withLock { $0.append(text) } } }
                let session = Session(configuration)
                var request = Request(url: origin.url())
                request.headers = Self.secrets
                request.headers["Proxy-Connection"] = "keep-alive"
                for _ in 0..<2 { try await session.expect(request, "secret") }
                let asked = try #require(proxy.requests.first)
                #expect(proxy.requests.count == 1)
                // An open tunnel is the socket itself, without a layer and without copies.
                #expect(
                    made.withLock { $0 } == [
                        "tcp(127.0.0.1:\(proxy.port))", "tls1.3(origin.test) over tcp(127.0.0.1:\(proxy.port))",
                    ])
                #expect(asked.method == "CONNECT" && asked.target == "origin.test:\(origin.port)")
                #expect(!asked.headers.contains { $0.value.contains("ORIGIN") }, "\(asked.headers)")
                #expect(
                    Set(asked.headers.map { "\($0.name)".lowercased() }) == [
                        "host", "proxy-authorization", "user-agent",
                    ])
                for seen in origin.requests {
                    #expect(!seen.headers.contains { "\($0.name)".lowercased().hasPrefix("proxy") })
                    #expect(seen.headers[.authorization] == "Bearer ORIGIN" && seen.tls?.serverName == "origin.test")
                }
                #expect(resolver.asked.isEmpty)
            }
        }
    }

    /// The caller's field is sent to the proxy that forwards the request or opens the tunnel, and to no other server.
    @Test func `a Proxy-Authorization field of the caller is for the proxy only (security 5)`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] { origin.route("/") { _ in .ok("here") } }
                try await withTestProxy { proxy in
                    let (configuration, _) = Self.client(.fixed([try proxy.address()]), base)
                    let session = Session(configuration)
                    for target in ["http://plain.test:\(plain.port)/", "https://origin.test:\(secure.port)/"] {
                        var request = Request(url: try url(target))
                        request.headers[.proxyAuthorization] = "Mine 1"
                        try await session.expect(request, "here")
                        #expect(proxy.requests.last?.headers[.proxyAuthorization] == "Mine 1")
                        #expect(proxy.requests.last?.headers.count { $0.name == .proxyAuthorization } == 1)
                    }
                    #expect(secure.requests.first?.headers[.proxyAuthorization] == nil)
                    // Without a proxy the field is not sent.
                    var direct = base
                    direct.networks.proxyPolicy = .none
                    var request = Request(url: plain.url())
                    request.headers[.proxyAuthorization] = "Mine 1"
                    try await Session(direct).expect(request, "here")
                    #expect(plain.requests.last?.headers[.proxyAuthorization] == nil)
                }
            }
        }
    }

    @Test("bodies pass in both directions") func bodiesBothWays() async throws {
        let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try await withHTTPTestServer { origin in
            origin.route("/") { request in .ok(.bytes(request.body)) }
            try await withTestProxy { proxy in
                let session = Session(Self.client(.fixed([try proxy.address()])).0)
                let request = Request(
                    url: try url("http://origin.test:\(origin.port)/"), method: .put, body: .data(content))
                let (answer, _) = try await session.data(for: request)
                #expect(answer.count == min(content.count, origin.configuration.recordedBodySize))
                let head = Request(url: try url("http://origin.test:\(origin.port)/"), method: .head)
                let (none, response) = try await session.data(for: head)
                #expect(none.isEmpty && response.http?.status == .ok)
            }
        }
    }

    @Test func `a 407 to a request is a response, a 407 to CONNECT is an error with that response`() async throws {
        try await withTestProxy(.init(.http, user: "u", password: "pw")) { proxy in
            let session = Session(Self.client(.fixed([try proxy.address(user: "u", password: "WR0NG")])).0)
            let (body, response) = try await session.data(from: try url("http://origin.test/"))
            #expect(
                response.http?.status == .proxyAuthenticationRequired
                    && String(decoding: body, as: UTF8.self) == "refused\n")
            let error = await failure(.proxyAuthenticationRequired, .remote, .connecting) {
                try await session.data(from: try url("https://origin.test/"))
            }
            #expect(error?.proxyFailure?.head?.headers[.proxyAuthenticate] == "Basic realm=\"test\"")
            #expect(error?.proxyFailure?.proxy.port == proxy.port && error?.url?.host() == "origin.test")
            #expect(error?.description.contains("407") == true && error?.description.contains("WR0NG") == false)
            await expectEmpty(session)
        }
    }

    @Test(arguments: [301, 302, 400, 403, 404, 500, 502, 503])
    func `a proxy cannot answer in place of an https origin (security 42)`(status: Int) async throws {
        try await withTestProxy(.init(.http, fault: .refuse(status))) { proxy in
            let session = Session(Self.client(.fixed([try proxy.address()])).0)
            let error = await failure(.proxyRefused, .remote, .connecting) {
                try await session.data(from: try url("https://origin.test/"))
            }
            #expect(error?.proxyFailure?.head?.status.code == status)
            await expectEmpty(session)
        }
    }

    // MARK: TLS to the proxy

    @Test func `TLS to the proxy, and TLS to the origin inside it`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test", "localhost"]), name: "origin.test") { origin, base in
            origin.route("/") { _ in .ok(.bytes([UInt8](repeating: 7, count: 1 << 20))) }
            let tls = origin.configuration.tls
            try await withHTTPTestServer(answering: "plain") { plain in
                try await withTestProxy(.init(.http, tls: tls)) { proxy in
                    let (configuration, resolver) = Self.client(.fixed([try proxy.address()]), base)
                    let session = Session(configuration)
                    for _ in 0..<2 {
                        let (data, _) = try await session.data(from: origin.url())
                        #expect(data == Data(repeating: 7, count: 1 << 20))
                    }
                    try await session.expect(try url("http://plain.test:\(plain.port)/"), "plain")
                    #expect(
                        proxy.requests.map(\.method) == ["CONNECT", "GET"]
                            && proxy.requests.allSatisfy { $0.serverName == "localhost" })
                    #expect(resolver.asked.isEmpty)
                    var upload = Request(url: origin.url(), method: .post)
                    upload.body = .data(Data(count: 1 << 20))
                    let (_, response) = try await session.data(for: upload)
                    #expect(response.http?.status == .ok)
                    #expect(origin.requests.last?.bodyCount == 1 << 20)
                }
            }
        }
    }

    @Test func `a proxy's certificate is verified`() async throws {
        let authority = try TestCertificateAuthority(commonName: "Test root")
        let identity = try authority.issue(.init(names: ["other.test"]))
        try await withTestProxy(.init(.http, tls: .init(identity))) { proxy in
            var (configuration, _) = Self.client(.fixed([try proxy.address(user: "u", password: "S3CRET")]))
            configuration.tls.trustRoots = .pem(String(decoding: authority.pem, as: UTF8.self))
            for target in ["http://origin.test/", "https://origin.test/"] {
                let error = await failure(.certificateNameMismatch, .remote, .securing) {
                    try await Session(configuration).data(from: try url(target))
                }
                #expect(error?.proxyFailure?.proxy.kind == .https)
            }
            // The tunnel is not used, either: an attacker in place of the proxy could choose the route.
            let (first, base) = (try proxy.address(), configuration)
            try await withTestProxy { other in
                let second = try other.address()
                let (session, _) = Self.client(.custom { _ in [[first], [second], .direct] }, base)
                await expectFailure(.certificateNameMismatch, .remote, .securing) {
                    try await Session(session).data(from: try url("http://origin.test/"))
                }
                #expect(other.connections == 0)
            }
            configuration.tls.trustRoots = .system
            await expectFailure(.certificateUntrusted, .remote, .securing) {
                try await Session(configuration).data(from: try url("http://origin.test/"))
            }
            #expect(proxy.requests.isEmpty)
        }
    }

    /// A failure behind the proxies belongs to the origin.
    @Test func `the origin's certificate is verified, also through a tunnel`() async throws {
        try await withSecureOrigin(.init(names: ["localhost"])) { origin, base in
            try await withTestProxy(.init(.socks)) { proxy in
                let (configuration, _) = Self.client(.fixed([try proxy.address()]), base)
                let error = await failure(.certificateNameMismatch, .remote, .securing) {
                    try await Session(configuration).data(from: try url("https://origin.test:\(origin.port)/"))
                }
                #expect(error?.proxyFailure == nil)
            }
        }
    }

    // MARK: SOCKS

    @Test(arguments: [Proxy.Kind.socks5, .socks4a])
    func `a SOCKS proxy resolves the names of its destinations (security 63)`(
        kind: Proxy.Kind
    ) async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] { origin.route("/") { _ in .ok("here") } }
                try await withTestProxy(.init(.socks)) { proxy in
                    let (configuration, resolver) = Self.client(.fixed([try proxy.address(kind)]), base)
                    let session = Session(configuration)
                    try await session.expect(try url("http://plain.test:\(plain.port)/"), "here")
                    try await session.expect(try url("http://127.0.0.1:\(plain.port)/"), "here")
                    try await session.expect(secure.url(), "here")
                    #expect(resolver.asked.isEmpty)
                    #expect(
                        proxy.requests.map(\.target) == [
                            "plain.test:\(plain.port)", "127.0.0.1:\(plain.port)", "origin.test:\(secure.port)",
                        ])
                    // To the origin it is an ordinary request.
                    #expect(
                        plain.requests.first?.target == "/"
                            && plain.requests.first?.headers[.host] == "plain.test:\(plain.port)")
                }
            }
        }
    }

    @Test(arguments: ["socks5", "socks4"]) func `names are resolved locally for the schemes socks4 and socks5`(
        scheme: String
    ) async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy(.init(.socks)) { proxy in
                var (configuration, _) = Self.client(.fixed([try Proxy("\(scheme)://127.0.0.1:\(proxy.port)")]))
                let target = try url("http://origin.test:\(origin.port)/")
                configuration.networks.resolver = RecordingResolver(
                    .success([.ipv6([UInt8](repeating: 0, count: 15) + [1], port: 0), .ipv4((127, 0, 0, 1), port: 0)]))
                try await Session(configuration).expect(target, "here")
                #expect(proxy.requests.last?.target == "127.0.0.1:\(origin.port)")
                configuration.networks.addressPolicy = AddressPolicy { $0.host != "origin.test" }
                await expectFailure(.addressRefused) { try await Session(configuration).data(from: target) }
                // The host that is not found is the origin's, not the proxy's.
                let error = await failure(.hostNotFound) {
                    try await Session(Self.client(configuration.networks.proxyPolicy).0).data(from: target)
                }
                #expect(error?.proxyFailure == nil && proxy.requests.count == 1)
                try await proxy.untilEmpty()
            }
        }
    }

    @Test("user and password are sent to a SOCKS proxy") func userAndPasswordOfSOCKS() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy(.init(.socks, user: "u", password: "pw")) { proxy in
                func session(_ kind: Proxy.Kind, _ user: String?, _ password: String?) throws -> Session {
                    Session(Self.client(.fixed([try proxy.address(kind, user: user, password: password)])).0)
                }
                try await session(.socks5, "u", "pw").expect(origin.url(), "here")
                #expect(proxy.requests.last?.credentials == "u:pw")
                for (user, password) in [("u", "no"), ("x", "pw"), (nil, nil)] as [(String?, String?)] {
                    let error = await failure(.proxyAuthenticationRequired, .remote, .connecting) {
                        try await session(.socks5, user, password).data(from: origin.url())
                    }
                    #expect(error?.proxyFailure != nil)
                }
                try await session(.socks4a, "u", nil).expect(origin.url(), "here")
                let error = await failure(.proxyRefused, .remote, .connecting) {
                    try await session(.socks4a, "x", nil).data(from: origin.url())
                }
                #expect(error?.proxyFailure?.reply == 93)
            }
        }
    }

    @Test("every refusal of a SOCKS proxy has its error", arguments: 1...9) func everyRefusalOfSOCKS(code: Int)
        async throws
    {
        try await withTestProxy(.init(.socks, fault: .refuse(code))) { proxy in
            let session = Session(Self.client(.fixed([try proxy.address()])).0)
            let error = await failure(.proxyRefused, .remote, .connecting) {
                try await session.data(from: try url("http://origin.test/"))
            }
            #expect(error?.proxyFailure?.reply == UInt8(code) && error?.detail?.contains("(\(code))") == true)
            await expectEmpty(session)
        }
    }

    // MARK: Chains

    @Test func `in a chain each proxy is reached through the previous one`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test", "localhost"]), name: "origin.test") { secure, base in
            try await withHTTPTestServer { plain in
                for origin in [plain, secure] { origin.route("/") { _ in .ok("here") } }
                try await withTestProxy(.init(.http, user: "a", password: "1")) { first in
                    try await withTestProxy(.init(.socks, user: "b", password: "2")) { second in
                        try await withTestProxy(.init(.http, tls: secure.configuration.tls, user: "c", password: "3")) {
                            third in
                            let chain: ProxyChain = [
                                try first.address(user: "a", password: "1"),
                                try second.address(host: "second.test", user: "b", password: "2"),
                                try third.address(user: "c", password: "3"),
                            ]
                            let (configuration, resolver) = Self.client(.fixed(chain), base)
                            let session = Session(configuration)
                            try await session.expect(secure.url(), "here")
                            try await session.expect(try url("http://plain.test:\(plain.port)/"), "here")
                            #expect(resolver.asked.isEmpty)
                            #expect(
                                first.requests.map(\.target) == Array(repeating: "second.test:\(second.port)", count: 2)
                            )
                            #expect(
                                second.requests.map(\.target) == Array(repeating: "localhost:\(third.port)", count: 2))
                            #expect(
                                third.requests.map(\.target) == [
                                    "origin.test:\(secure.port)", "http://plain.test:\(plain.port)/",
                                ])
                            // Each proxy gets its own credentials only.
                            #expect(
                                first.requests.allSatisfy {
                                    $0.headers[.proxyAuthorization] == "Basic " + Data("a:1".utf8).base64EncodedString()
                                })
                            #expect(
                                third.requests.allSatisfy {
                                    $0.headers[.proxyAuthorization] == "Basic " + Data("c:3".utf8).base64EncodedString()
                                })
                            #expect(second.requests.allSatisfy { $0.credentials == "b:2" })
                        }
                    }
                }
            }
        }
    }

    @Test func `an error names the failing proxy`() async throws {
        let closed = try Proxy(.http, host: "127.0.0.1", port: try closedPort())
        let nowhere = try Proxy(.socks5, host: "no.such.proxy", port: 1)
        let (configuration, resolver) = Self.client(.custom { url in url.path() == "/1" ? [[nowhere]] : [[closed]] })
        let session = Session(configuration)
        let missing = await failure(.proxyNotFound, .system, .resolving) {
            try await session.data(from: try url("https://origin.test/1"))
        }
        #expect(missing?.proxyFailure?.proxy == nowhere && resolver.asked == ["no.such.proxy"])
        let refused = await failure(.connectionRefused, .remote, .connecting) {
            try await session.data(from: try url("https://origin.test/2"))
        }
        #expect(
            refused?.proxyFailure?.proxy == closed
                && refused?.detail?.hasPrefix("proxy 127.0.0.1:\(closed.port)") == true)
        let refusedWords =
            "connectionRefused (connecting, https://origin.test/2): proxy 127.0.0.1:\(closed.port): "
            + "no program listens on this port"
        #expect(refused.map { "\($0)" } == refusedWords)
        try await withTestProxy { first in
            try await withTestProxy(.init(.socks, fault: .refuse(2))) { second in
                let hop = try second.address()
                let session = Session(Self.client(.fixed([try first.address(), hop])).0)
                let error = await failure(.proxyRefused, .remote, .connecting) {
                    try await session.data(from: try url("http://origin.test/"))
                }
                #expect(error?.proxyFailure?.proxy == hop && error?.proxyFailure?.reply == 2)
                let dead = Session(Self.client(.fixed([try first.address(), closed])).0)
                let other = await failure(.proxyRefused, .remote, .connecting) {
                    try await dead.data(from: try url("http://origin.test/"))
                }
                #expect(other?.proxyFailure?.proxy.port == first.port && other?.proxyFailure?.head?.status.code == 502)
            }
        }
    }

    @Test func `the address policy applies to the proxy's addresses`() async throws {
        try await withTestProxy { proxy in
            var (configuration, _) = Self.client(.fixed([try proxy.address()]))
            configuration.networks.addressPolicy = .publicOnly
            let session = Session(configuration)
            let error = await failure(.addressRefused, .local, .connecting) {
                try await session.data(from: try url("http://origin.test/"))
            }
            #expect(error?.proxyFailure != nil)
            #expect(proxy.connections == 0)
        }
    }

    // MARK: The pool

    @Test func `routes and credentials of proxies are kept apart (security 17)`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy { one in
                try await withTestProxy { other in
                    let next = Lock<[ProxyChain]>([])
                    let session = Session(Self.client(.custom { _ in next.withLock { $0 } }).0)
                    let chains: [ProxyChain] = [
                        .direct, [try one.address()], [try one.address(user: "a", password: "1")],
                        [try one.address(user: "a", password: "2")],
                        [try other.address()], [try other.address(), try one.address()],
                    ]
                    for round in 1...2 {
                        for chain in chains {
                            next.withLock { $0 = [chain] }
                            try await session.expect(origin.url(), "here")
                        }
                        #expect(one.connections == 4 && other.connections == 2, "round \(round)")
                    }
                    // Fields of the caller are credentials, too.
                    next.withLock { $0 = [[chains[1].proxies[0]]] }
                    for (field, connections) in [("x", 5), ("y", 6), ("x", 6)] {
                        var request = Request(url: origin.url())
                        request.headers[.proxyAuthorization] = field
                        try await session.expect(request, "here")
                        #expect(one.connections == connections)
                    }
                }
            }
        }
    }

    @Test func `another proxy gets no credentials of the first (security 7)`() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .redirect("http://second.test:\(origin.port)/end") }
            origin.route("/end") { _ in .ok("end") }
            try await withTestProxy { one in
                try await withTestProxy { other in
                    let first: ProxyChain = [try one.address(user: "u", password: "pw")]
                    let second: ProxyChain = [try other.address()]
                    let session = Session(Self.client(.custom { $0.host() == "first.test" ? [first] : [second] }).0)
                    var request = Request(url: try url("http://first.test:\(origin.port)/"))
                    try await session.expect(request, "end")
                    #expect(other.requests.last?.headers[.proxyAuthorization] == nil)
                    request.headers[.proxyAuthorization] = "Mine"
                    try await session.expect(request, "end")
                    #expect(
                        one.requests.last?.headers[.proxyAuthorization] == "Mine"
                            && other.requests.last?.headers[.proxyAuthorization] == nil)
                }
            }
        }
    }

    // MARK: Choosing

    @Test func `another route is tried when a proxy cannot be reached, and a direct one only if it is listed`()
        async throws
    {
        let dead = try Proxy(.http, host: "127.0.0.1", port: try closedPort())
        try await withHTTPTestServer(answering: "here") { origin in
            try await withTestProxy { proxy in
                let good = try proxy.address()
                try await Session(Self.client(.custom { _ in [[dead], [good]] }).0).expect(origin.url(), "here")
                #expect(proxy.requests.count == 1)
                try await Session(Self.client(.custom { _ in [[dead], .direct] }).0).expect(origin.url(), "here")
                await expectFailure(.connectionRefused) {
                    try await Session(Self.client(.custom { _ in [[dead]] }).0).data(from: origin.url())
                }
            }
            // A refusal is an answer, so no other route is tried.
            try await withTestProxy(.init(.http, fault: .refuse(403))) { proxy in
                let strict = try proxy.address()
                await expectFailure(.proxyRefused) {
                    try await Session(Self.client(.custom { _ in [[strict], .direct] }).0).data(
                        from: try url("https://origin.test/"))
                }
            }
        }
    }

    @Test func `an invalid proxy choice fails the load`() async throws {
        struct Unknown: Error {}
        await expectFailure(.badDecision, .local, .preparing) {
            try await Session(Self.client(.custom { _ in [] }).0).data(from: try url("http://a.test/"))
        }
        let error = await failure(.decisionFailed, .local, .preparing) {
            try await Session(Self.client(.custom { _ in throw Unknown() }).0).data(from: try url("http://a.test/"))
        }
        #expect(error?.underlying is Unknown)
    }

    @Test(arguments: Ending.withoutIdle) func `a proxy choice that takes too long ends with the load`(ending: Ending)
        async throws
    {
        let (isAsked, latch) = (Flag(), Latch())
        let session = Session(
            Self.client(
                .custom { _ in
                    isAsked.raise()
                    await latch.wait()
                    return [.direct]
                }, .patient
            ).0)
        let load = RunningLoad(session, ending.applied(to: Request(url: try url("http://a.test/"))))
        try await isAsked.wait()
        ending.apply(load, session)
        #expect(await load.reason == ending.reason)
        await expectEmpty(session)
    }

    @Test func `a session's proxies replace those of the environment, and have exceptions (checklist 24)`()
        async throws
    {
        let environment = ProxyEnvironment { $0 == "http_proxy" ? "env.test:1" : nil }
        let origin = try Target("http://a.test/").origin
        let intern = try Target("http://b.intern/").origin
        let load = LoadHandle(idle: nil, resource: nil)
        func chains(_ policy: ProxyPolicy, _ origin: Origin) async throws -> String {
            try await ProxyPlan(policy, [], environment).chains(to: origin, nil, for: load).map(\.description).joined(
                separator: " ")
        }
        let own = ProxyPolicy.fixed([try Proxy("own.test:1")], except: ["intern"])
        try await expect({ try await chains(.environment, origin) }, "http://env.test:1")
        try await expect({ try await chains(.automatic, origin) }, "http://env.test:1")
        try await expect({ try await chains(own, origin) }, "http://own.test:1")
        try await expect({ try await chains(own, intern) }, "direct")
        try await expect({ try await chains(.none, origin) }, "direct")
        #expect(ProxyPlan(.none).isDirect && ProxyPlan(.environment, [], ProxyEnvironment { _ in nil }).isDirect)
        if case .environment = Configuration.default.networks.proxyPolicy.choice {
        } else {
            Issue.record("the default is the environment")
        }
    }

    // MARK: Faults

    @Test("a proxy that sends garbage is an error", arguments: [TestProxy.Configuration.Kind.http, .socks])
    func garbage(kind: TestProxy.Configuration.Kind)
        async throws
    {
        try await withTestProxy(.init(kind, fault: .garbage)) { proxy in
            let session = Session(Self.client(.fixed([try proxy.address()])).0)
            let error = await failure(kind == .http ? .notHTTP : .notSOCKS, .remote, .connecting) {
                try await session.data(from: try url("https://origin.test/"))
            }
            #expect(error?.proxyFailure != nil)
            await expectEmpty(session)
        }
    }

    @Test("a proxy that closes early is an error", arguments: TestProxy.Point.allCases) func anEarlyEnd(
        point: TestProxy.Point
    ) async throws {
        for (kind, proxies) in [(TestProxy.Configuration.Kind.http, [Proxy.Kind.http]), (.socks, [.socks5, .socks4a])] {
            let origin = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
            defer { origin.close() }
            try await withTestProxy(.init(kind, user: "u", fault: .close(point))) { proxy in
                for kind in proxies where kind == .socks5 || point != .authentication {
                    let session = Session(Self.client(.fixed([try proxy.address(kind, user: "u", password: "")])).0)
                    do {
                        _ = try await session.data(from: try url("https://origin.test:\(origin.address.port)/"))
                        Issue.record("no error")
                    } catch let error as LoadError {
                        #expect(
                            [.connectionLost, .truncated].contains(error.reason) && error.proxyFailure != nil,
                            "\(kind) \(point): \(error)")
                    }
                    await expectEmpty(session)
                }
            }
        }
    }

    @Test func `the head of a proxy's response has a limit (security 42)`() async throws {
        let endless = Array("HTTP/1.1 200 OK\r\nX: ".utf8) + [UInt8](repeating: 0x61, count: 200_000)
        try await withTestProxy(.init(.http, fault: .answer(endless))) { proxy in
            let session = Session(Self.client(.fixed([try proxy.address()])).0)
            await expectFailure(.headTooLarge, .remote, .connecting) {
                try await session.data(from: try url("https://origin.test/"))
            }
        }
    }

    /// Interim responses, framing fields and an old version are accepted with a 2xx.
    @Test(
        "a tunnel is open after any 2xx",
        arguments: [
            "HTTP/1.0 200 OK\r\n\r\n",
            """
            HTTP/1.1 103 Early\r\nA: b\r\n\r\n\
            HTTP/1.1 299 \r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n
            """,
        ])
    func waysToSayYes(yes: String) async throws {
        let transport = ScriptedTransport([
            .takeUntil("\r\n\r\n"), .give(yes), .takeUntil("\r\n\r\n"),
            .give("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ])
        var configuration = Configuration.patient
        configuration.networks.proxyPolicy = .fixed([try Proxy("proxy.test")])
        configuration.dial = { _, _ in transport }
        try await Session(configuration).expect(try url("https://origin.test/"), "ok")
    }

    /// Bytes after the 2xx may come from the origin or from an attacker; TLS verifies them.
    @Test func `bytes after the response to CONNECT are neither lost nor trusted (security 41)`() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            for kind in [TestProxy.Configuration.Kind.http, .socks] {
                try await withTestProxy(
                    .init(kind, fault: .extraBytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfalse".utf8)))
                ) { proxy in
                    let session = Session(Self.client(.fixed([try proxy.address()]), base).0)
                    let error = await failure(.notTLS, .remote, .securing) {
                        try await session.data(from: origin.url())
                    }
                    #expect(error?.proxyFailure == nil)
                    await expectEmpty(session)
                }
            }
        }
    }

    @Test func `a stream uses every kind of proxy, and keeps bytes received with the tunnel's response`() async throws {
        for (kind, proxies) in [(TestProxy.Configuration.Kind.http, [Proxy.Kind.http]), (.socks, [.socks5, .socks4a])] {
            try await withTestProxy(.init(kind, fault: .extraBytes(Array("220 hello\r\n".utf8)))) { proxy in
                for kind in proxies {
                    let listener = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
                    let (configuration, resolver) = Self.client(.fixed([try proxy.address(kind)]))
                    let session = Session(configuration)
                    let task = session.streamTask(host: "mail.test", port: Int(listener.address.port)).resumed()
                    let (greeting, _) = try await task.read(atLeast: 11, atMost: 100)
                    #expect(String(decoding: greeting, as: UTF8.self) == "220 hello\r\n")
                    #expect(
                        proxy.requests.last?.target == "mail.test:\(listener.address.port)" && resolver.asked.isEmpty)
                    task.cancel()
                    listener.close()
                    await expectEmpty(session)
                }
            }
        }
    }

    // MARK: The end at every step

    @Test(
        "a stall of the proxy at any point is ended by every kind of end", arguments: TestProxy.Point.allCases,
        Ending.allCases)
    func everyStall(point: TestProxy.Point, ending: Ending) async throws {
        for (kind, proxies) in [(TestProxy.Configuration.Kind.http, [Proxy.Kind.http]), (.socks, [.socks5, .socks4a])] {
            guard kind == .socks || point != .authentication else { continue }
            let origin = try SocketListener(.ipv4((127, 0, 0, 1), port: 0))
            defer { origin.close() }
            try await withTestProxy(.init(kind, user: "u", fault: .stall(point))) { proxy in
                for kind in proxies where kind == .socks5 || point != .authentication {
                    let session = Session(
                        Self.client(.fixed([try proxy.address(kind, user: "u", password: "")]), .patient).0)
                    let request = Request(url: try url("https://origin.test:\(origin.address.port)/"))
                    let load = RunningLoad(session, ending.applied(to: request))
                    if !ending.isTimeout { try await proxy.untilStalled() }
                    ending.apply(load, session)
                    let reason = await load.reason
                    #expect(reason == ending.reason, "\(kind)")
                    await expectEmpty(session)
                    try await proxy.untilEmpty()
                }
            }
        }
    }

    /// Every wait of a tunnel through three proxies, with a script.
    @Test("every wait of a tunnel can be ended", arguments: 1...11, Ending.allCases) func everyWaitOfATunnel(
        block: Int, ending: Ending
    ) async throws {
        let steps: [ScriptedTransport.Step] = [
            .block, .take(10), .block, .takeUntil("\r\n\r\n"), .block, .give("HTTP/1.1 200 O"), .block,
            .give("K\r\n\r\n"),
            .block, .take(4), .block, .give([5, 2]), .take(6), .block, .give([1, 0]), .take(10), .block,
            .give([5, 0, 0, 1, 0]), .block,
            .give([0, 0, 0, 0, 0]), .takeUntil([0x61, 0x2E, 0x74, 0]), .block, .give([0, 90, 0, 0, 0, 0, 0, 0]), .block,
            .takeUntil("\r\n\r\n"),
            .give("HTTP/1.1 204 No Content\r\n\r\n"),
        ]
        let transport = ScriptedTransport(steps, holdingAt: block)
        var configuration = Configuration.patient
        configuration.networks.proxyPolicy = .fixed([
            try Proxy("one.t:1"), try Proxy("socks5h://u:pw@b.t"), try Proxy("socks4a://c.t"),
        ])
        configuration.dial = { _, _ in transport }
        let session = Session(configuration)
        let load = RunningLoad(session, ending.applied(to: Request(url: try url("https://a.t/"))))
        if !ending.isTimeout { await transport.held() }
        ending.apply(load, session)
        let reason = await load.reason
        #expect(reason == ending.reason && transport.mismatch == nil && transport.blocks <= block)
        await expectEmpty(session)
        #expect(transport.isClosed)
    }

    /// Cancels loads at random moments: no connection to or through the proxy remains.
    @Test("loads cancelled at random leave no connection") func manyCancelledAtRandom() async throws {
        try await withSecureOrigin(.init(names: ["origin.test", "localhost"]), name: "origin.test") { origin, base in
            origin.route("/") { _ in .ok(.bytes([UInt8](repeating: 7, count: 100_000))) }
            try await withTestProxy(.init(.socks, user: "u", password: "pw")) { first in
                try await withTestProxy(.init(.http, tls: origin.configuration.tls)) { second in
                    let chain: ProxyChain = [try first.address(user: "u", password: "pw"), try second.address()]
                    let session = Session(Self.client(.fixed(chain), base).0)
                    await withTaskGroup(of: Void.self) { group in
                        for number in 0..<120 {
                            group.addTask {
                                let load = RunningLoad(session, Request(url: origin.url()))
                                if number % 4 != 0 {
                                    var random = SeededGenerator(seed: UInt64(number))
                                    let delay = Int.random(in: 0..<20_000, using: &random)
                                    try? await Task.sleep(for: .microseconds(delay))
                                    load.task.cancel()
                                }
                                let reason = await load.reason
                                #expect(reason == nil || (reason == .cancelled && number % 4 != 0), "seed \(number)")
                            }
                        }
                    }
                    await expectEmpty(session)
                    try await first.untilEmpty()
                    try await second.untilEmpty()
                }
            }
        }
    }

    @Test("metrics contain the proxy's connection") func metrics() async throws {
        try await withSecureOrigin(.init(names: ["origin.test"]), name: "origin.test") { origin, base in
            origin.route("/") { _ in .ok("here") }
            try await withTestProxy { proxy in
                let session = Session(Self.client(.fixed([try proxy.address()]), base).0)
                let task = session.dataTask(Request(url: origin.url())).resumed()
                _ = try await task.value
                let transaction = try #require(await task.metrics.transactions.last)
                #expect(transaction.isProxyConnection && transaction.remotePort == Int(proxy.port))
                let moments = [
                    transaction.connectStart, transaction.secureStart, transaction.secureEnd, transaction.connectEnd,
                ].compactMap { $0 }
                #expect(moments.count == 4 && zip(moments, moments.dropFirst()).allSatisfy { $1 - $0 >= .zero })
            }
        }
    }
}
