// SPDX-License-Identifier: Apache-2.0

// Options for the output: files, formats, messages.

extension OptionTable {
    static let output: [OptionRule] = [
        OptionRule(.output, "o", "output", "FILE", "write the body to FILE once it is complete; - is standard output") {
            $0.add(output: $1 == "-" ? .standardOutput : .file($1))
        }.like(wget: "-O FILE", httpie: "-o FILE"),
        OptionRule(.output, "O", flag: "remote-name", "write the body to a file in this folder, named after the URL") {
            $0.add(output: .namedAfterURL)
        }.like(wget: "(default)", httpie: "-d, --download"),
        OptionRule(
            .output, "C", "continue-at", "OFFSET|-",
            "resume FILE if the server can validate its part; -: also if not; OFFSET: from there"
        ) { (options, text) throws(UsageError) in
            options.output.resuming = try OptionValue.resuming(text)
        }.optional { $0 == "-" || !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
            .also("continue").like(wget: "-c, --continue", httpie: "-c, --continue"),
        OptionRule(.output, "i", switch: "include", "write the response heads before the body", \.output.includesHead)
            .also("show-headers").like(wget: "--save-headers", httpie: "(default); -h for heads alone"),
        OptionRule(.output, "D", "dump-header", "FILE", "write the response heads to FILE; - is standard output") {
            $0.output.headFile = $1
        }.like(wget: "-S, --server-response"),
        OptionRule(
            .output, "w", "write-out", "FORMAT",
            "write FORMAT after each load: %{http_code}, %{json}, %header{NAME} …; @FILE reads it"
        ) { (options, text) throws(UsageError) in
            options.output.writeOut = try OptionValue.format(text)
        }.like(httpie: "-p, --print"),
        OptionRule(
            .output, "f", switch: "fail", "treat 4xx and 5xx as a failure: no body, exit code 22",
            \.output.failsOnStatus
        ).like(wget: "(default)", httpie: "--check-status (default)"),
        OptionRule(
            .output, nil, switch: "fail-with-body", "like --fail, but write the body", \.output.failsWithBody
        ).like(wget: "--content-on-error", httpie: "--check-status (default)"),
        OptionRule(
            .output, nil, switch: "fail-early", "end with the first load that fails", \.shared.failsEarly),
        OptionRule(.output, nil, "summary", "json", "write one JSON object per URL instead of the body") {
            (options, text) throws(UsageError) in
            guard text == "json" else { throw UsageError("--summary takes json, not \(text)") }
            options.output.printsSummary = true
        },
        OptionRule(
            .output, nil, "pretty", "WHAT", "indent and colour JSON, XML, HTML and heads: all, colors, format, none"
        ) {
            (options, text) throws(UsageError) in
            guard let pretty = Pretty(text) else {
                throw UsageError("--pretty takes all, colors, format or none, not \(text)")
            }
            options.output.pretty = pretty
        }.like(httpie: "--pretty WHAT"),
        OptionRule(
            .output, nil, switch: "sse", "write server-sent events as they arrive, and reconnect at their end",
            \.output.printsEvents),
        OptionRule(.output, "s", switch: "silent", "no progress, no messages; the exit code remains", \.isSilent)
            .also("quiet").like(wget: "-q, --quiet", httpie: "-q, --quiet"),
        OptionRule(.output, "S", switch: "show-error", "with -s: show errors", \.shared.showsErrors)
            .like(wget: "-nv, --no-verbose"),
        OptionRule(.output, "#", flag: "progress-bar", "show a bar (default on a terminal)") {
            $0.shared.showsMeter = true
        }.also("progress-meter").undone { $0.shared.showsMeter = false }.like(wget: "--progress=bar"),
        OptionRule(.output, nil, "stderr", "FILE", "write messages to FILE; - is standard output") {
            $0.shared.errorFile = $1
        }.like(wget: "-o FILE"),
        OptionRule(.output, "N", granted: "no-buffer", "write received bytes at once (always)").also("buffer")
            .like(httpie: "-S, --stream"),
        OptionRule(.output, nil, granted: "styled-output", "heads stand out on a terminal (always)"),
    ]

    static let saving: [OptionRule] = [
        OptionRule(
            .output, nil, switch: "remote-name-all", "-O for every URL without an -o of its own", \.saving.namesAll),
        OptionRule(
            .output, "J", switch: "remote-header-name", "with -O: the name that the server gives (Content-Disposition)",
            \.saving.takesServersName
        ).also("content-disposition").like(wget: "--content-disposition", httpie: "-d, --download"),
        OptionRule(.output, nil, "output-dir", "DIR", "write the files of -o and -O into DIR") {
            $0.saving.folder = $1
        }.also("directory-prefix").like(wget: "-P DIR"),
        OptionRule(
            .output, nil, switch: "create-dirs", "create missing folders of -o and --output-dir",
            \.saving.makesFolders
        ).like(wget: "(default)"),
        OptionRule(.output, nil, flag: "no-clobber", "write FILE.1, FILE.2 … if FILE exists") {
            $0.saving.collision = .number
        }.undone { $0.saving.collision = .replace }.like(wget: "(default)", httpie: "(default with -d)"),
        OptionRule(.output, nil, flag: "clobber", "replace an existing FILE (default)") {
            $0.saving.collision = .replace
        }.undone { $0.saving.collision = .number },
        OptionRule(.output, nil, flag: "skip-existing", "do not load if FILE exists") {
            $0.saving.collision = .skip
        }.like(wget: "-nc, --no-clobber"),
        OptionRule(
            .output, "R", switch: "remote-time", "give the file the time of Last-Modified", \.saving.setsTime
        ).like(wget: "(default)"),
        OptionRule(.output, nil, granted: "remove-on-error", "leave no incomplete file (always)"),
        OptionRule(.output, nil, "input-file", "LIST", "load the URLs in LIST too, one a line; - is standard input") {
            $0.saving.inputLists.append($1)
        }.like(wget: "-i LIST"),
    ]
}

extension Options {
    fileprivate mutating func add(output: Destination) {
        outputs.append(output)
        self.output.destination = output
    }
}

extension OptionValue {
    static func resuming(_ text: String, _ option: String = "-C") throws(UsageError) -> Options.Resuming {
        if text.isEmpty { return .ifChecked }
        if text == "-" { return .always }
        // No file is larger, and sums with the length of a response stay numbers.
        guard let offset = Int64(text), (0..<1 << 62).contains(offset) else {
            throw UsageError("\(option) takes - or a number of bytes, not \(text)")
        }
        return .from(offset)
    }

    /// Returns the format of `-w`, which may be the path of a file after `@`.
    static func format(_ text: String) throws(UsageError) -> String {
        guard text.hasPrefix("@") else { return text }
        return try ConfigFile.text(String(text.dropFirst()), mustExist: true) ?? ""
    }
}
