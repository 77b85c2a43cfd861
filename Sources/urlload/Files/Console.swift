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

extension String {
    /// The text with another character in place of each control character: text that comes from elsewhere must not
    /// control the terminal.
    var withoutControls: String {
        let scalars = String.UnicodeScalarView(
            unicodeScalars.map { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "\u{FFFD}" : $0 })
        return String(scalars)
    }
}
