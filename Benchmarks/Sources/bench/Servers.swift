// SPDX-License-Identifier: Apache-2.0

import Foundation

/// nginx and the holding server on loopback, with certificates created for the run. Both end with this process.
final class Servers {
    let directory: String
    private var pids: [pid_t] = []
    private var ports: [Scenario.Server: UInt16] = [:]
    /// The ports of the relays that run. The first scenario with a distance to a server starts one.
    private var relays: [Path: UInt16] = [:]
    private var ownsDirectory = false
    /// The address of the proxy, which forwards bytes without inspecting them.
    private(set) var proxy = ""

    /// The folder for downloads: in memory if possible, because disk times vary.
    var target: String {
        let memory = "/dev/shm"
        return (access(memory, W_OK) == 0 ? memory : directory) + "/bench-\(getpid())"
    }
    var cafile: String { "\(directory)/ca.pem" }
    private var handshakeLog: String { "\(directory)/handshakes.log" }

    init() throws {
        if let given = ProcessInfo.processInfo.environment["BENCH_DIRECTORY"] {
            directory = given
        } else {
            var template = Array("\(NSTemporaryDirectory())/bench-XXXXXX".utf8CString)
            guard let made = mkdtemp(&template) else { throw Failure("mkdtemp: errno \(errno)") }
            directory = String(cString: made)
            ownsDirectory = true
        }
        chmod(directory, 0o755)  // nginx's worker runs as another user when started by root
        try makeCertificates()
        try makeFiles()
        try startNginx()
        try startHolding()
        try startProxy()
    }

    deinit { stop() }

    func stop() {
        for pid in pids {
            kill(pid, SIGTERM)
            _ = reap(pid)
        }
        pids = []
        if ownsDirectory { try? FileManager.default.removeItem(atPath: directory) }
    }

    func url(_ scenario: Scenario, requests: Int) throws -> String {
        let path =
            scenario.kind == .inflight && scenario.server == .holding ? "\(scenario.path)\(requests)" : scenario.path
        return try base(scenario.server, scenario.distance) + path
    }

    func warmURL(_ scenario: Scenario) throws -> String {
        // A warm-up past the relay has another port, and so another connection than what is measured.
        let base = try base(scenario.server, scenario.usesNewConnections ? nil : scenario.distance)
        return switch scenario.kind {
        case .bulk where scenario.distance != nil: base + "/1m"
        case .bulk, .beside, .download: base + "/16m"
        case .inflight where scenario.server == .holding: base + "/hold/1"
        default: base + scenario.path
        }
    }

    /// Small responses of another process than the one that sends a large body at the same time.
    var besideURL: String { "http://127.0.0.1:\(ports[.holding]!)/hold/1" }

    /// A file of 1 GiB.
    var largeURL: String { "http://127.0.0.1:\(ports[.plain]!)/1g" }

    private func base(_ server: Scenario.Server, _ distance: Distance?) throws -> String {
        let scheme = server.isTLS ? "https" : "http"
        let port = try distance.map { try relay(to: server, $0) } ?? ports[server]!
        return "\(scheme)://127.0.0.1:\(port)"
    }

    // MARK: - Distances

    /// A server with the distance to it.
    private struct Path: Hashable {
        let server: Scenario.Server
        let distance: Distance
    }

    static var hasRelay: Bool { access("\(Contender.directory)/relay", X_OK) == 0 }

    /// Returns the port of the relay that stands in front of a server.
    private func relay(to server: Scenario.Server, _ distance: Distance) throws -> UInt16 {
        let path = Path(server: server, distance: distance)
        if let port = relays[path] { return port }
        let port = try start("relay", distance.arguments(to: ports[server]!))
        relays[path] = port
        return port
    }

    /// Pins nginx's worker to the first core, or removes the pinning.
    func pinWorker(_ pinned: Bool) {
        let worker = says("cat /proc/\(pids[0])/task/\(pids[0])/children")
        _ = says("taskset -pc \(pinned ? "0" : "0-1023") \(worker)")
    }

    /// Returns one character for each handshake so far: `r` for resumed, `.` for full.
    func handshakes() -> [UInt8] {
        usleep(50_000)  // the line is written after the answer
        let log = FileManager.default.contents(atPath: handshakeLog) ?? Data()
        return log.filter { $0 != UInt8(ascii: "\n") }
    }

    /// FoundationNetworking reads its roots from the system's bundle only: in a mount namespace of its own, the
    /// contender finds a bundle that contains the test root.
    var trusting: [String] {
        let mount = "mount --bind '\(directory)/bundle.pem' \(Self.systemBundle) && exec \"$@\""
        return ["unshare"] + (geteuid() == 0 ? [] : ["-r"]) + [
            "-m", "--propagation", "private", "sh", "-c", mount, "sh",
        ]
    }
    private static let systemBundle = "/etc/ssl/certs/ca-certificates.crt"

    // MARK: - Making

    private func makeCertificates() throws {
        let extensions =
            "basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
            + "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n"
        try write(extensions, "ext")
        try shell(
            """
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 30 \
                -subj '/CN=Bench CA' -addext basicConstraints=critical,CA:TRUE \
                -addext keyUsage=critical,keyCertSign,cRLSign
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.csr -subj /CN=server
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile ext -out server.pem
            cat \(Self.systemBundle) ca.pem >bundle.pem
            """)
    }

    /// Creates the files, sparse, and reads them once so that they are in the page cache.
    private func makeFiles() throws {
        try shell(
            "mkdir www; truncate -s 1G www/1g; truncate -s 64M www/64m; truncate -s 16M www/16m; truncate -s 200MB www/200m; truncate -s 1MB www/1m; cat www/* >/dev/null; chmod -R a+rX www"
        )
    }

    private static var speaksHTTP3: Bool { says("nginx -V").contains("http_v3_module") }

    /// Servers of HTTP/3 and HTTP/2; empty if this nginx has no HTTP/3. Loads on new connections go to servers of which
    /// one resumes no session.
    private func http3Servers(_ locations: String) throws -> String {
        guard Self.speaksHTTP3 else { return "" }
        let free = try freePorts(3)
        (ports[.http3], ports[.http3Resuming], ports[.http3Full]) = (free[0], free[1], free[2])
        let settings = [
            "", "ssl_session_cache shared:d:8m; ssl_session_tickets on; access_log \(handshakeLog) reused;",
            "ssl_session_cache off; ssl_session_tickets off; access_log \(handshakeLog) reused;",
        ]
        return zip(free, settings).map { port, settings in
            "server { listen 127.0.0.1:\(port) quic reuseport; listen 127.0.0.1:\(port) ssl backlog=4096; http2 on; "
                + "http3 on; http3_max_concurrent_streams 1024; quic_gso on; \(settings) \(locations) }"
        }.joined(separator: "\n")
    }

    private func startNginx() throws {
        let free = try freePorts(6)
        (ports[.http2], ports[.http2TLS]) = (free[4], free[5])
        (ports[.plain], ports[.tls], ports[.tlsResuming], ports[.tlsFull]) = (free[0], free[1], free[2], free[3])
        let locations = locations(free[0])
        let http3 = try http3Servers(locations)
        // The response of 1 KB is sent from memory in one write: a response from a file takes a second segment, and the
        // client would be measured for waking up twice. The handshake servers close the connection after each response.
        try write(
            """
            daemon off;
            worker_processes 1;
            pid \(directory)/nginx.pid;
            error_log \(directory)/error.log warn;
            worker_rlimit_nofile 20000;
            events { worker_connections 16384; }
            http {
              client_body_temp_path \(directory)/t1; proxy_temp_path \(directory)/t2;
              fastcgi_temp_path \(directory)/t3; uwsgi_temp_path \(directory)/t4; scgi_temp_path \(directory)/t5;
              log_format reused $ssl_session_reused;
              access_log off;
              default_type text/plain;
              sendfile on; tcp_nodelay on; output_buffers 4 128k;
              keepalive_requests 10000000; keepalive_timeout 60s;
              open_file_cache max=16 inactive=60s;
              ssl_certificate \(directory)/server.pem; ssl_certificate_key \(directory)/server.key;
              ssl_protocols TLSv1.2 TLSv1.3;
              server { listen 127.0.0.1:\(free[0]) backlog=4096; \(locations) }
              server { listen 127.0.0.1:\(free[1]) ssl backlog=4096; ssl_session_cache shared:a:8m; \(locations) }
              server { listen 127.0.0.1:\(free[4]) http2 backlog=4096; \(locations) }
              server { listen 127.0.0.1:\(free[5]) ssl http2 backlog=4096; ssl_session_cache shared:c:8m; \(locations) }
              server { listen 127.0.0.1:\(free[2]) ssl backlog=4096; ssl_session_cache shared:b:8m; ssl_session_tickets on;
                keepalive_timeout 0; access_log \(handshakeLog) reused; \(locations) }
              server { listen 127.0.0.1:\(free[3]) ssl backlog=4096; ssl_session_cache off; ssl_session_tickets off;
                keepalive_timeout 0; access_log \(handshakeLog) reused; \(locations) }
              \(http3)
            }
            """, "nginx.conf")
        let (pid, output) = try spawn(
            [
                "setpriv", "--pdeathsig", "TERM", "nginx", "-c", "\(directory)/nginx.conf", "-e",
                "\(directory)/start.log",
            ])
        close(output)
        pids.append(pid)
        for port in free { try waitForPort(port) }
    }

    /// Returns the locations of a server, with port `plain` for the requests that it makes itself.
    private func locations(_ plain: UInt16) -> String {
        let body = String(repeating: "x", count: 1024)
        return "root \(directory)/www; location = /1k { return 200 '\(body)'; }"
            + "location = /1k/public { add_header Cache-Control max-age=600; return 200 '\(body)'; }"
            + "location = /1k/private { add_header Cache-Control no-store; return 200 '\(body)'; }"
            // Reads a body to its end, into memory, and answers it then.
            + "location = /sink { client_max_body_size 0; client_body_buffer_size 64m; proxy_pass_request_body off; "
            + "proxy_set_header Content-Length ''; proxy_method GET; proxy_pass http://127.0.0.1:\(plain)/1k; }"
    }

    private func startHolding() throws {
        ports[.holding] = try start("hold")
        ports[.sockets] = try start("sockets")
    }

    private func startProxy() throws {
        proxy = "http://127.0.0.1:\(try start("connect"))"
    }

    /// Starts a server of this package, which prints the port it listens on.
    private func start(_ executable: String, _ arguments: [String] = []) throws -> UInt16 {
        let program = "\(Contender.directory)/\(executable)"
        let (pid, output) = try spawn(["setpriv", "--pdeathsig", "TERM", program] + arguments)
        pids.append(pid)
        let line = FileHandle(fileDescriptor: output, closeOnDealloc: true).availableData
        let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard let port = UInt16(text) else { throw Failure("\(executable) said no port") }
        return port
    }

    private func shell(_ script: String) throws {
        let finished = try run(["sh", "-c", "set -e; cd '\(directory)'; exec 2>setup.log; \(script)"])
        guard finished.status == 0 else { throw Failure(says("cat '\(directory)/setup.log'")) }
    }

    private func write(_ text: String, _ name: String) throws {
        try text.write(toFile: "\(directory)/\(name)", atomically: false, encoding: .utf8)
    }

    private func freePorts(_ count: Int) throws -> [UInt16] {
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        return try (0..<count).map { _ in
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            sockets.append(descriptor)
            var address = loopback(0)
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let bound = withAddress(&address) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
            guard bound else { throw Failure("bind: errno \(errno)") }
            return UInt16(bigEndian: address.sin_port)
        }
    }

    private func waitForPort(_ port: UInt16) throws {
        for _ in 0..<100 {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var address = loopback(port)
            let length = socklen_t(MemoryLayout<sockaddr_in>.size)
            if withAddress(&address, { connect(descriptor, $0, length) }) == 0 { return }
            usleep(50_000)
        }
        throw Failure("nginx does not answer: " + says("cat '\(directory)/start.log' '\(directory)/error.log'"))
    }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}

private func withAddress<R>(_ address: inout sockaddr_in, _ use: (UnsafeMutablePointer<sockaddr>) -> R) -> R {
    withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1, use)
    }
}
