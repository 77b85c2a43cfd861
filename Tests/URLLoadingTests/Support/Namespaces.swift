// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoadingTestChildren

/// Networks of the kernel's own, that come and go: in a namespace, which a process with one thread must make. So
/// the test runs itself again inside one. What a machine does not allow counts as unproved, and the output says so.
enum Namespaces {
    static let isInside = ProcessInfo.processInfo.environment["URLLOADING_NAMESPACE"] != nil
    static let areAllowed = command != nil
    static let areMissing: Comment =
        "unproved: this machine makes no network namespaces with virtual links (unshare, ip)"

    /// A process without rights needs a namespace for its user, too; one behind chroot(2) is given none.
    private static let command = ["unshare -rn", "unshare -n"].first {
        run("\($0) ip link add v0 type veth peer name v1")
    }

    @discardableResult static func run(_ command: String) -> Bool { system("\(command) >/dev/null 2>&1") == 0 }

    /// Runs a test of a suite inside of a namespace of its own. It must print that it has proved its name.
    static func prove(_ name: String, of suite: String) async throws {
        let command = try #require(command)
        let output = "/tmp/url-loading-\(getpid())-\(UInt32.random(in: 0 ..< .max))"
        let child = try ChildProcess(
            "/bin/sh",
            [
                "-c",
                "exec \(command) \"$0\" --testing-library swift-testing --filter \(suite)/\(name) >\(output) 2>&1",
                try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"),
            ],
            environment: ["URLLOADING_NAMESPACE": "1"])
        let status = await child.wait()
        let said = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
        unlink(output)
        #expect(status == 0, "\(said)")
        #expect(said.contains("namespace proved: \(name)"), "\(said)")
    }
}
