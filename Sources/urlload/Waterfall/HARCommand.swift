// SPDX-License-Identifier: Apache-2.0

// In this folder: times drawn as bars

// `urlload har FILE`: draws the requests of an HTTP Archive.

import URLLoading

enum HARCommand {
    static let usage = """
        urlload har FILE [--report OUT.html]

        Draws the requests of an HTTP Archive: a line for each with the stages of its time, grouped by connection.
        --report writes an HTML page instead. - is standard input.
        Exit code 0; 26 if FILE is not an HTTP Archive.

        """

    static func run(_ arguments: [String]) -> ExitCode {
        var words = arguments[...]
        var file: String?
        var page: String?
        while let word = words.popFirst() {
            switch word {
            case "-h", "--help": return Console.print(usage)
            case "--report":
                guard let path = words.popFirst() else { return mistake("--report needs a value: OUT.html") }
                page = path
            case _ where word.hasPrefix("-") && word != "-": return mistake("har has no option \(word)")
            default: file = word
            }
        }
        guard let file else { return mistake("har takes a FILE") }
        do throws(OutputError) {
            let archive = try HARFile.read(file)
            if let page {
                try Drawing.write(ReportPage.make(archive.waterfall, details: archive.details), to: page)
            } else {
                try Drawing.draw(archive.waterfall, on: .standardOutput)
            }
            return .done
        } catch {
            try? FileDescriptor.standardError.write("urlload: \(error.words)\n")
            return error.code
        }
    }

    private static func mistake(_ words: String) -> ExitCode { Console.usage(words, "urlload har --help") }
}

/// Where waterfalls go.
enum Drawing {
    /// Draws lines as wide as the terminal; 100 columns elsewhere.
    static func draw(_ waterfall: Waterfall, on output: FileDescriptor) throws(OutputError) {
        let lines = WaterfallLines.make(
            waterfall, width: output.terminalSize?.columns ?? 100,
            hasColors: output.isTerminal && !Pretty.forbidsColors)
        try output.write(lines.map { $0 + "\n" }.joined())
    }

    /// Writes a page to a file, which is replaced in one step.
    static func write(_ page: String, to path: String) throws(OutputError) {
        guard path != "-" else { return try FileDescriptor.standardOutput.write(page) }
        let file = try AtomicFile(path: path)
        try file.write(page)
        try file.commit()
    }
}
