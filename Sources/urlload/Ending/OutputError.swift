// SPDX-License-Identifier: Apache-2.0

// Failures of files.

import Glibc

/// The output cannot be written, or the data to send cannot be read.
struct OutputError: Error {
    let code: ExitCode
    let words: String

    init(_ code: ExitCode, _ words: String) {
        self.code = code
        self.words = words
    }

    /// An error with the description of an errno.
    static func system(_ number: Int32, _ what: String, _ code: ExitCode = .write) -> OutputError {
        guard number != EPIPE else { return OutputError(.brokenPipe, "\(what): closed") }
        return OutputError(code, "\(what): \(String(cString: strerror(number)))")
    }
}
