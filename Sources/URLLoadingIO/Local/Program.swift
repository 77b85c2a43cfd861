// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoadingCSystem

/// A program to start in a process of its own.
package struct Program: Sendable {
    /// The first is the name or path of the executable; a name is searched for in PATH.
    package var arguments: [String]
    package var environment: [String: String]
    /// The working folder; `nil` for that of this process.
    package var folder: String?
    /// The open files, from descriptor 0 on; `nil` is `/dev/null`. No other descriptor is inherited.
    package var files: [PassedFile?]
    /// True for a session of its own, without the signals of this process's terminal (setsid(2)).
    package var leadsSession: Bool

    package init(
        _ arguments: [String], environment: [String: String], folder: String? = nil,
        files: [PassedFile?] = [nil, nil, nil], leadsSession: Bool = false
    ) {
        self.arguments = arguments
        self.environment = environment
        self.folder = folder
        self.files = files
        self.leadsSession = leadsSession
    }

    /// Starts the program as a child. The caller must wait for its end; otherwise it remains in the process table.
    /// - Returns: the process identifier.
    /// - Throws: the system's error, such as `ENOENT`.
    package func start() throws(IOFailure) -> Int32 {
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard nothing >= 0 else { throw IOFailure(.system(errno), .open) }
        defer { _ = csys_close(nothing) }
        let descriptors = files.map { $0?.descriptor ?? nothing }
        let outcome = Self.withTexts(arguments) { words in
            Self.withTexts(environment.map { "\($0)=\($1)" }) { variables in
                descriptors.withUnsafeBufferPointer { descriptors -> Int32 in
                    Self.withText(folder) { folder in
                        guard let path = words[0] else { return -EINVAL }
                        var program = csys_program(
                            path: path, arguments: words, environment: variables, folder: folder,
                            files: descriptors.baseAddress, file_count: Int32(descriptors.count),
                            leads_session: leadsSession)
                        return csys_program_start(&program)
                    }
                }
            }
        }
        guard outcome >= 0 else { throw IOFailure(.system(-outcome), .open) }
        withExtendedLifetime(files) {}
        return outcome
    }

    /// Starts the program detached: it is a child of the system's first process, and neither a signal to this process's
    /// group nor the end of this process reaches it. Blocks until the intermediate shell has ended.
    package func startDetached() throws(IOFailure) {
        var between = self
        // The shell starts the program in the background and ends; the system's first process adopts the program.
        between.arguments = ["/bin/sh", "-c", "\"$@\" & exit 0", "sh"] + arguments
        between.leadsSession = true
        let process = try between.start()
        let code = csys_program_wait(process)
        // A lost status says nothing: the shell has ended, and its own status is 0 unless it could not run.
        guard code <= 0 else { throw IOFailure(.system(ECHILD), .open) }
    }

    private static func withText<R>(_ text: String?, _ use: (UnsafePointer<CChar>?) -> R) -> R {
        guard let text else { return use(nil) }
        return text.withCString { use($0) }
    }

    private static func withTexts<R>(
        _ texts: [String], _ use: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> R
    ) -> R {
        // The C strings are valid until the call returns.
        var list = texts.map { strdup($0) } + [nil]
        defer { for text in list { free(text) } }
        return use(&list)
    }
}
