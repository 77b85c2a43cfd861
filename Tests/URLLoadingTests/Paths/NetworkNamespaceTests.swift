import Foundation
import Glibc
import Testing
import URLLoading

/// Networks of the kernel's own, that come and go: in a namespace, which a process with one thread must make. So
/// the test runs itself again inside one. What a machine does not allow counts as unproved, and the output says so.
enum Namespaces {
    static let isInside = ProcessInfo.processInfo.environment["URLLOADING_NAMESPACE"] != nil
    static let areAllowed = run("unshare -rn ip link add v0 type veth peer name v1")
    static let areMissing: Comment = "unproved: this machine makes no network namespaces with virtual links (unshare, ip)"

    @discardableResult static func run(_ command: String) -> Bool { system("\(command) >/dev/null 2>&1") == 0 }
}

@Suite(.timeLimit(.minutes(2)))
struct NetworkNamespaceTests {
    @Test("checklist 162: links of a namespace go down and up", .enabled(if: Namespaces.areAllowed && !Namespaces.isInside, Namespaces.areMissing))
    func inside() async throws {
        let output = "/tmp/url-loading-\(getpid())-\(UInt32.random(in: 0 ..< .max))"
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c", "exec unshare -rn \"$0\" --testing-library swift-testing --filter NetworkNamespaceChild >\(output) 2>&1",
            try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"),
        ]
        process.environment = ProcessInfo.processInfo.environment.merging(["URLLOADING_NAMESPACE": "1"]) { $1 }
        let status = await withCheckedContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(returning: -1) }
        }
        let said = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
        unlink(output)
        #expect(status == 0, "\(said)")
        #expect(said.contains("namespace proved"), "\(said)")
    }
}

@Suite(.enabled(if: Namespaces.isInside, "run by NetworkNamespaceTests"), .timeLimit(.minutes(1)))
struct NetworkNamespaceChild {
    /// The paths until one is as it should be: some changes are several for the kernel.
    private func next(_ paths: inout NetworkPaths.Iterator, _ line: String) async {
        var last = ""
        while last != line {
            guard let path = await paths.next() else {
                Issue.record("the sequence ended before \(line)")
                return
            }
            last = "\(path)"
        }
    }

    private func ip(_ commands: String...) {
        for command in commands { #expect(Namespaces.run("ip \(command)"), "\(command)") }
    }

    @Test func upAndDown() async throws {
        let monitor = NetworkMonitor.shared
        #expect("\(monitor.current)" == "unsatisfied")
        var paths = monitor.paths.makeAsyncIterator()
        #expect(await paths.next()?.status == .unsatisfied)
        let four = "satisfied v0(wired, 4)", both = "satisfied v0(wired, 4+6)"

        ip("link set lo up", "link add v0 type veth peer name v1", "addr add 10.9.0.1/24 dev v0", "link set v0 up", "link set v1 up")
        await next(&paths, four)
        #expect("\(monitor.current)" == four)
        // The other end of the cable.
        ip("link set v1 down")
        await next(&paths, "unsatisfied")
        ip("link set v1 up")
        await next(&paths, four)
        // The kernel takes this route with the link, without a word.
        ip("route add default via 10.9.0.2", "link add w0 type veth peer name w1", "addr add 10.8.0.1/24 dev w0", "link set w0 up", "link set w1 up")
        await next(&paths, "satisfied v0(wired, 4) w0(wired, 4, spare)")
        ip("link set v0 down", "link set v0 up")
        await next(&paths, "satisfied v0(wired, 4) w0(wired, 4)")
        ip("link del w0")
        await next(&paths, four)
        ip("addr add 2001:db8::1/64 dev v0 nodad")
        await next(&paths, both)

        // More than the kernel keeps for who does not listen.
        let addresses = (0..<2000).map { "addr add 10.7.\($0 / 250).\($0 % 250 + 1)/32 dev v0" }
        let file = "/tmp/url-loading-\(getpid())-batch"
        try (addresses + ["addr flush dev v0"]).joined(separator: "\n").write(toFile: file, atomically: false, encoding: .utf8)
        ip("-batch \(file)")
        unlink(file)
        await next(&paths, "unsatisfied")
        ip("addr add 10.9.0.1/24 dev v0")
        await next(&paths, four)

        let waiting = Task { [paths] in
            var paths = paths
            return await paths.next()
        }
        try await Task.sleep(for: .milliseconds(2))
        waiting.cancel()
        #expect(await waiting.value == nil)
        print("namespace proved")
    }
}
