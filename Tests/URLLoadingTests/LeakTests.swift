// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import URLLoadingIO

/// Other tests that run at the same time use slots and sockets too, so leaked ones can only be counted in a process of
/// their own.
///
/// One test and a short one: the library of tests blocks a thread of the concurrency pool for as long
/// as the other process runs.
@Suite struct LeakTests {
    @Test("loads, streams and sessions leave no object behind") func loadsStreamsAndSessionsLeaveNoObjectBehind()
        async throws
    {
        await #expect(processExitsWith: .success) {
            try await LeakTests.load(cancels: 10)
            let (slots, sockets) = (Poller.shared.slotsInUse, openSockets())
            try await LeakTests.load(cancels: 100)
            #expect(Poller.shared.slotsInUse == slots)
            #expect(openSockets() == sockets)
        }
    }

    private static func load(cancels: Int) async throws {
        try await Waits.all()
        for isSecure in [false, true] { try await StressTests.cancelRandomly(cancels, isSecure: isSecure) }
    }
}

/// The number of sockets this process holds.
func openSockets() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        var information = stat()
        guard let descriptor = Int32(name), fstat(descriptor, &information) == 0 else { continue }
        if information.st_mode & S_IFMT == S_IFSOCK { count += 1 }
    }
    return count
}
