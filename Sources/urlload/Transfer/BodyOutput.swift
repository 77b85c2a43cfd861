// SPDX-License-Identifier: Apache-2.0

// The destination of a response's body.

import FoundationEssentials
import URLLoading

enum BodyOutput {
    case standardOutput
    case file(AtomicFile)
    /// Behind the bodies of other loads.
    case appended(AppendedFile, name: String)
    /// Standard output, written when the body is complete.
    case pretty(PrettyBody)
    /// The bytes are counted and dropped.
    case none

    init(_ options: Options, _ url: URL, _ response: Response, isTerminal: Bool) throws(OutputError) {
        switch options.output.destination {
        case .standardOutput:
            guard !options.output.printsSummary else {
                self = .none
                return
            }
            let body = PrettyBody(options.output.pretty, response, isTerminal: isTerminal)
            self = body.map { .pretty($0) } ?? .standardOutput
        case .file(let path) where options.output.joined?.hasBegun == true:
            self = .appended(try AppendedFile(path: path), name: path)
        case .file(let path): self = .file(try AtomicFile(path: path))
        case .namedAfterURL:
            let name = Self.name(options, url, response)
            if options.saving.makesFolders { try Folder.make(for: name) }
            // A name that is free now may be taken when the body is complete: by another load of the same name, too.
            self = .file(try AtomicFile(path: name, collision: options.saving.collision == .skip ? .skip : .number))
        case .nothing: self = .none
        }
    }

    /// The file name of `-J`: the server's suggestion, never an existing file.
    private static func name(_ options: Options, _ url: URL, _ response: Response) -> String {
        let wanted = wantedName(options, url, response)
        return options.saving.collision == .skip ? wanted : FileName.free(wanted)
    }

    /// The path that the response names (`-J`, wget's `--trust-server-names`), whether there is such a file or not.
    static func wantedName(_ options: Options, _ url: URL, _ response: Response) -> String {
        let saving = options.saving
        let suggested =
            saving.takesServersName
            ? response.http?.headers["Content-Disposition"].flatMap { FileName.suggested($0) } : nil
        let own = suggested ?? saving.name(for: saving.takesLastURL ? response.url : url)
        return (saving.folder.map { $0.hasSuffix("/") ? $0 : $0 + "/" } ?? "") + own
    }

    /// The path of the file; after ``commit()`` the one that it got.
    var fileName: String? {
        switch self {
        case .file(let file): file.name
        case .appended(_, let name): name
        case .standardOutput, .pretty, .none: nil
        }
    }

    /// True after a commit that has left another file in place.
    var isDropped: Bool { if case .file(let file) = self { file.isDropped } else { false } }

    func write(_ bytes: UnsafeRawBufferPointer) throws(OutputError) {
        switch self {
        case .standardOutput: try FileDescriptor.standardOutput.write(bytes)
        case .file(let file): try file.write(bytes)
        case .appended(let file, _): try file.write(bytes)
        case .pretty(let body): try body.write(bytes)
        case .none: break
        }
    }

    func write(_ text: String) throws(OutputError) { try write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) throws(OutputError) {
        var failure: OutputError?
        bytes.withUnsafeBytes { buffer in
            do throws(OutputError) { if !buffer.isEmpty { try write(buffer) } } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Completes the output of httpie's grammar: what follows the body is in the file before it is complete.
    func end(_ exchange: ExchangeOutput) throws(OutputError) {
        if case .file = self {
            try write(try exchange.ends())
            return try commit()
        }
        try commit()
        _ = try exchange.ends()
    }

    /// Completes the output, after the trailers that are written behind a body with `-i`.
    func end(_ trailers: Headers) throws(OutputError) {
        let text = HeadText.lines(trailers)
        if case .pretty = self {
            try commit()
            return try FileDescriptor.standardOutput.write(text)
        }
        if !text.isEmpty { try write(text) }
        try commit()
    }

    func write(head: HTTPHead) throws(OutputError) {
        if case .pretty(let body) = self { return try body.write(head: head) }
        try write(HeadText.make(head))
    }

    func commit() throws(OutputError) {
        switch self {
        case .file(let file): try file.commit()
        case .pretty(let body): try body.commit()
        case .standardOutput, .appended, .none: break
        }
    }

    /// Called when the load ended early: keeps the partial file as `FILE.part`.
    func leave(_ count: Int64, _ total: Int64?) -> Report.Kept? {
        if case .pretty(let body) = self { try? body.commit() }
        guard case .file(let file) = self, count > 0, file.leave(as: PartialFile.partName(file.name)) else {
            return nil
        }
        return Report.Kept(file: file.name, bytes: count, total: total, isChecked: false, isResumable: false)
    }
}
