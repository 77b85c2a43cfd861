// SPDX-License-Identifier: Apache-2.0

// Programs as they were written for FoundationNetworking, each against the origin whose address it is
// given. One source, built twice (ClassicProgramTests): only the import differs. What must live here:
// which program is run, and how it says what it found.

import Foundation

/// Checks an expectation, one line each. The program ends with 1 if one failed.
enum Check {
    nonisolated(unsafe) private static var failures = 0
    private static let lock = NSLock()

    static func that(_ what: String, _ holds: Bool, _ found: @autoclosure () -> Any = "") {
        lock.lock()
        defer { lock.unlock() }
        if !holds { failures += 1 }
        // Written at once: a program that crashes has said how far it came.
        let line = holds ? "ok      \(what)\n" : "FAILED  \(what) \(found())\n"
        FileHandle.standardOutput.write(Data(line.utf8))
    }

    static func end() -> Never { exit(failures == 0 ? 0 : 1) }
}

/// Waits for what comes on another thread, and not for ever.
final class Signal: @unchecked Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    func fire() { semaphore.signal() }
    @discardableResult func wait(_ what: String, seconds: Double = 10) -> Bool {
        let came = semaphore.wait(timeout: .now() + seconds) == .success
        if !came { Check.that("\(what) comes to an end", false) }
        return came
    }
}

let programs: [String: (URL) -> Void] = [
    "delegates": runDelegates, "handlers": runHandlers, "downloads": runDownloads, "images": runImages,
    "login": runLogin, "stub": runStub, "requests": runRequests, "order": runOrder, "stores": runStores, "jar": runJar,
    "faults": runFaults, "fields": runFields,
]

guard CommandLine.arguments.count == 3, let program = programs[CommandLine.arguments[1]],
    let origin = URL(string: CommandLine.arguments[2])
else {
    FileHandle.standardError.write(Data("usage: PROGRAM ORIGIN, one of \(programs.keys.sorted())\n".utf8))
    exit(2)
}
program(origin)
Check.end()
