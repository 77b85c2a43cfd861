// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Connecting to an address other than the URL's.
@Suite struct AddressRows {
    static let hostNotFound = RecordingResolver(.failure(IOFailure(.hostNotFound("looked up"), .resolve)))

    static func configuration(_ overrides: AddressOverride...) -> Configuration {
        var configuration = Configuration.ephemeral
        configuration.networks.addressOverrides = AddressOverrides(overrides)
        configuration.networks.resolver = hostNotFound
        return configuration
    }

    static func socketPath() -> String {
        FileManager.default.temporaryDirectory.appending(path: "urlload-\(UInt64.random(in: 0 ... .max)).sock").path()
    }

    @Test func `a Unix socket replaces the host`() async throws {
        let path = Self.socketPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withHTTPTestServer(.init(address: .unix(path))) { origin in
            origin.route("/info") { _ in .ok("docker") }
            var configuration = Self.configuration(try .unixSocket(path, for: "docker"))
            // Neither proxies nor the address policy apply to a Unix socket.
            configuration.networks.proxyPolicy = .fixed([try Proxy("proxy.test")])
            configuration.networks.addressPolicy = .publicOnly
            let session = Session(configuration)
            for _ in 0..<2 { try await session.expect(try url("http://docker/info"), "docker") }
            #expect(
                origin.requests.map { $0.headers[.host] } == ["docker", "docker"]
                    && origin.requests.last?.connection == 1)
            await expectFailure(.proxyNotFound) { try await session.data(from: try url("http://other/info")) }
        }
    }

    @Test func `the error of a Unix socket names it, and says whether it exists`() async throws {
        let path = Self.socketPath()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let session = Session(Self.configuration(try .unixSocket(path, for: nil)))
        let missing = await failure(.connectionRefused, .remote, .connecting) {
            try await session.data(from: try url("http://docker/"))
        }
        #expect(missing?.detail == "the socket file \(path) does not exist")
        // A file on which no program listens.
        try Data().write(to: URL(filePath: path))
        let silent = await failure(.connectionRefused, .remote, .connecting) {
            try await session.data(from: try url("http://docker/"))
        }
        #expect(silent?.detail == "no program listens on the Unix socket \(path)")
        // The name of an abstract socket is random, as its path is.
        let name = "urlload-\(UInt64.random(in: 0 ... .max))"
        let abstract = Session(Self.configuration(try .abstractUnixSocket(name, for: nil)))
        let unbound = await failure(.connectionRefused, .remote, .connecting) {
            try await abstract.data(from: try url("http://docker/"))
        }
        #expect(unbound?.detail == "no program listens on the Unix socket @\(name)")
    }

    @Test func `the error of a closed port says that no program listens`() async throws {
        let port = try closedPort()
        let address = "http://127.0.0.1:\(port)/"
        let refused = await failure(.connectionRefused, .remote, .connecting) {
            try await Session(.ephemeral).data(from: try url(address))
        }
        #expect(
            refused.map { "\($0)" }
                == "connectionRefused (connecting, \(address)): no program listens on this port")
    }

    @Test func `an abstract Unix socket replaces the host`() async throws {
        let name = "urlload-\(UInt64.random(in: 0 ... .max))"
        let address = try SocketAddress.abstractUnix(name)
        #expect(address.description == "unix:@\(name)")
        let listener = try SocketListener(address)
        defer { listener.close() }
        async let answered: Void = {
            let client = try await listener.accept(StopToken())
            var buffer = [UInt8](repeating: 0, count: 1000)
            client.slot.wake()
            while case .blocked = try buffer.withUnsafeMutableBytes({ try client.read(into: $0) }) { await pause() }
            _ = try Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8).withUnsafeBytes {
                try client.write($0)
            }
            client.close()
        }()
        try await Session(Self.configuration(try .abstractUnixSocket(name, for: "a.test"))).expect(
            try url("http://a.test/"), "ok")
        try await answered
    }

    @Test func `configured addresses replace the name resolution`() async throws {
        try await withSecureOrigin(.init(names: ["api.test"]), name: "api.test") { origin, base in
            origin.route("/") { _ in .ok("here") }
            var configuration = base
            configuration.networks.resolver = Self.hostNotFound
            configuration.networks.addressOverrides = [
                try .addresses(["127.0.0.9"], of: "api.test", port: 1), try .addresses(["127.0.0.1"], of: "API.test"),
            ]
            let session = Session(configuration)
            try await session.expect(origin.url(), "here")
            #expect(origin.requests.first?.tls?.serverName == "api.test")
            await expectFailure(.hostNotFound) { try await session.data(from: try url("https://www.api.test/")) }
            // The address policy applies to configured addresses, too.
            configuration.networks.addressPolicy = .publicOnly
            await expectFailure(.addressRefused) { try await Session(configuration).data(from: origin.url()) }
        }
    }

    @Test func `another host and port serve the name of the first`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            let session = Session(
                Self.configuration(
                    try .connect("www.test", port: 80, to: "127.0.0.1", onPort: origin.port),
                    try .connect(nil, port: 81, to: nil, onPort: origin.port)))
            try await session.expect(try url("http://www.test/"), "here")
            try await session.expect(try url("http://127.0.0.1:81/"), "here")
            #expect(origin.requests.map { $0.headers[.host] } == ["www.test", "127.0.0.1:81"])
            await expectFailure(.hostNotFound) { try await session.data(from: try url("http://www.test:82/")) }
            try await withTestProxy(.init(.socks)) { proxy in
                var configuration = Self.configuration(
                    try .connect("www.test", to: "staging.test", onPort: origin.port))
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                try await Session(configuration).expect(try url("http://www.test/"), "here")
                #expect(proxy.requests.first?.target == "staging.test:\(origin.port)")
            }
            // A proxy that receives the whole URL would connect to its host, so a tunnel is used.
            try await withTestProxy { proxy in
                var configuration = Self.configuration(
                    try .connect("www.test", port: 80, to: "staging.test", onPort: origin.port))
                configuration.networks.proxyPolicy = .fixed([try proxy.address()])
                let session = Session(configuration)
                try await session.expect(try url("http://www.test/"), "here")
                #expect(
                    proxy.requests.first?.method == "CONNECT"
                        && proxy.requests.first?.target == "staging.test:\(origin.port)"
                )
                #expect(origin.requests.last?.headers[.host] == "www.test" && origin.requests.last?.target == "/")
                try await session.expect(try url("http://other.test:\(origin.port)/"), "here")
                #expect(proxy.requests.last?.method == "GET")
            }
        }
    }

    @Test func `an invalid override fails the load`() {
        #expect(throws: LoadError.self) { try AddressOverride.unixSocket("", for: nil) }
        #expect(throws: LoadError.self) { try AddressOverride.unixSocket(String(repeating: "a", count: 108), for: nil) }
        #expect(throws: LoadError.self) { try AddressOverride.addresses([], of: "a") }
        #expect(throws: LoadError.self) { try AddressOverride.addresses(["a"], of: "a") }
        #expect(throws: LoadError.self) { try AddressOverride.addresses(["[::1]"], of: "a b") }
        #expect(throws: LoadError.self) { try AddressOverride.connect("a b", to: "a") }
        #expect(throws: LoadError.self) { try NetworkInterface.address("eth0") }
    }

    // MARK: Names

    @Test func `a resolver of the caller replaces the system's`() async throws {
        struct Broken: Error {}
        try await withHTTPTestServer(answering: "here") { origin in
            let asked = Lock<[String]>([])
            var configuration = Configuration.ephemeral
            configuration.networks.nameResolver = NameResolver { name in
                asked.withLock { $0.append(name) }
                switch name {
                case "a.test": return ["127.0.0.1"]
                case "none.test": return []
                case "odd.test": return ["localhost"]
                default: throw Broken()
                }
            }
            let session = Session(configuration)
            try await session.expect(try url("http://A.test:\(origin.port)/"), "here")
            await expectFailure(.hostNotFound, .system, .resolving) {
                try await session.data(from: try url("http://none.test/"))
            }
            await expectFailure(.lookupFailed, .system, .resolving) {
                try await session.data(from: try url("http://odd.test/"))
            }
            await expectFailure(.lookupFailed, .system, .resolving) {
                try await session.data(from: try url("http://broken.test/"))
            }
            // Invalid addresses, and addresses that do not belong to this machine.
            try await session.expect(origin.url(), "here")
            try await session.expect(try url("http://localhost:\(origin.port)/"), "here")
            #expect(asked.withLock { $0 } == ["a.test", "none.test", "odd.test", "broken.test"])
        }
    }

    @Test(arguments: Ending.withoutIdle) func `a name resolution that never ends is cancelled with its load`(
        ending: Ending
    ) async throws {
        let (isAsked, latch) = (Flag(), Latch())
        var configuration = Configuration.patient
        configuration.networks.nameResolver = NameResolver { _ in
            isAsked.raise()
            await latch.wait()
            return []
        }
        let session = Session(configuration)
        let load = RunningLoad(session, ending.applied(to: Request(url: try url("http://a.test/"))))
        try await isAsked.wait()
        ending.apply(load, session)
        #expect(await load.reason == ending.reason)
        await expectEmpty(session)
    }

    // MARK: Our own end

    @Test func `connections can be bound to an address or an interface`() async throws {
        try await withHTTPTestServer(answering: "here") { origin in
            func address(_ interface: NetworkInterface) async throws -> String? {
                var configuration = Configuration.ephemeral
                configuration.networks.interface = interface
                let task = Session(configuration).dataTask(Request(url: origin.url())).resumed()
                _ = try await task.value
                return try await task.metrics.transactions.last?.localAddress
            }
            try await expect({ try await address(try .address("127.0.0.2")) }, "127.0.0.2")
            try await expect({ try await address(.named("lo")) }, "127.0.0.1")
            await expectFailure(.interfaceUnavailable, .system, .connecting) { try await address(.named("nosuch0")) }
            // An address that no host has (RFC 5737), and one of the other family.
            await expectFailure(.interfaceUnavailable) { try await address(try .address("192.0.2.1")) }
            await expectFailure(.interfaceUnavailable) { try await address(try .address("::1")) }
        }
    }
}
