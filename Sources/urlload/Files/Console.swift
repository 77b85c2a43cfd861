// SPDX-License-Identifier: Apache-2.0

/// Short texts for the two standard outputs.
enum Console {
    /// - Parameter help: the command that lists the options.
    static func usage(_ words: String, _ help: String = Grammar.curl.help) -> ExitCode {
        try? FileDescriptor.standardError.write("urlload: \(words)\n\(help) lists the options\n")
        return .usage
    }

    static func print(_ text: String) -> ExitCode {
        do throws(OutputError) { try FileDescriptor.standardOutput.write(text) } catch {
            if error.code != .brokenPipe { try? FileDescriptor.standardError.write("urlload: \(error.words)\n") }
            return error.code
        }
        return .done
    }
}
