// SPDX-License-Identifier: Apache-2.0

// The floor of Swift: what a GET costs with one task for each connection over bare sockets, and nothing a client needs
// besides. Tasks run on the global pool; with TASKS_EXECUTOR=1 on the thread that waits for the kernel.

import BenchMeasure
import Glibc
import Synchronization

@main
struct SwiftTasks {
    let url: String
    let connections: Int
    let requests: Int
    let warm: Int
    let isPaced: Bool

    static func main() async {
        let options = bench_parse(CommandLine.argc, CommandLine.unsafeArgv, "Swift tasks over epoll")
        let isHTTP2 = getenv("BENCH_HTTP2").map { String(cString: $0) } == "1"
        guard ["get", "paced"].contains(String(cString: options.scenario)), options.cafile == nil, !isHTTP2
        else { bench_unsupported() }
        let tasks = SwiftTasks(
            url: String(cString: options.url), connections: min(options.places, options.connections),
            requests: options.requests, warm: options.warm, isPaced: options.rate > 0)
        if getenv("TASKS_EXECUTOR") != nil {
            await withTaskExecutorPreference(Loop.shared) { await tasks.measure() }
        } else {
            await tasks.measure()
        }
    }

    func measure() async {
        let target = Target(url)
        let connections = (0..<connections).map { _ in Connection(target) }
        if warm > 0 { _ = await run(connections, warm, isPaced: false) }
        bench_start()
        let bytes = await run(connections, requests, isPaced: isPaced)
        bench_stop(requests, bytes)
    }

    /// Runs one phase: `requests` distributed over as many tasks as there are connections.
    private func run(_ connections: [Connection], _ requests: Int, isPaced: Bool) async -> Int64 {
        let next = Next()
        return await withTaskGroup(of: Int64.self) { group in
            for connection in connections {
                group.addTask {
                    var bytes: Int64 = 0
                    while let number = next.number(below: requests) {
                        let began = isPaced ? await Self.begin(number) : 0
                        bytes += Int64(await connection.get())
                        if isPaced { bench_latency(bench_now() - began) }
                    }
                    return bytes
                }
            }
            return await group.reduce(0, +)
        }
    }

    private static func begin(_ number: Int) async -> Int64 {
        let due = bench_due(number)
        let left = due - bench_now()
        if left > 0 { try? await Task.sleep(nanoseconds: UInt64(left)) }
        return bench_begin(due, left > 0 ? 0 : 1)
    }
}

final class Next: Sendable {
    private let taken = Atomic<Int>(0)
    func number(below limit: Int) -> Int? {
        let number = taken.add(1, ordering: .relaxed).oldValue
        return number < limit ? number : nil
    }
}

/// http://127.0.0.1:8080/path, an address and not a name: no resolver in the measured region.
struct Target {
    let port: UInt16
    let request: [UInt8]

    init(_ url: String) {
        let parts = url.dropFirst("http://".count).split(separator: "/", maxSplits: 1)
        guard parts.count == 2, let port = parts[0].split(separator: ":").last.flatMap({ UInt16($0) })
        else { bench_fail("not a URL with a port") }
        self.port = port
        let head = "GET /\(parts[1]) HTTP/1.1\r\nHost: \(parts[0])\r\nAccept: */*\r\nUser-Agent: tasks\r\n\r\n"
        request = Array(head.utf8)
    }
}

/// A keep-alive connection of one task at a time.
final class Connection: @unchecked Sendable {
    private let target: Target
    private let slot = Slot()
    private let descriptor: Int32
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 * 1024, alignment: 16)

    init(_ target: Target) {
        self.target = target
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = target.port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0, fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { bench_fail("connect") }
        var yes: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
        Loop.shared.register(descriptor, slot)
    }

    deinit {
        close(descriptor)
        buffer.deallocate()
    }

    /// Returns the length of the body.
    func get() async -> Int {
        let request = target.request
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count
        else { bench_fail("send") }
        var count = 0
        var wanted = Int.max
        var head = 0
        while count < wanted {
            // The answer cannot be here yet; the edge says when it is.
            await slot.wait()
            while count < wanted {
                let received = recv(descriptor, buffer.baseAddress! + count, buffer.count - count - 1, 0)
                if received < 0, errno == EAGAIN { break }
                guard received > 0 else { bench_fail("closed") }
                count += received
                if head == 0 { (head, wanted) = length(of: count) }
            }
        }
        return wanted - head
    }

    /// Returns the length of the head and of the whole answer; 0 and a large number if the head is not complete.
    private func length(of count: Int) -> (Int, Int) {
        let text = buffer.baseAddress!.assumingMemoryBound(to: CChar.self)
        text[count] = 0
        guard let end = strstr(text, "\r\n\r\n") else { return (0, .max) }
        guard strncmp(text, "HTTP/1.1 200", 12) == 0 else { bench_fail("not a 200") }
        guard let field = strstr(text, "\r\nContent-Length:") else { bench_fail("no length") }
        let head = end + 4 - text
        return (head, head + atol(field + 17))
    }
}
