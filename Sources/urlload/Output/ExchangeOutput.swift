// SPDX-License-Identifier: Apache-2.0

// The requests and responses of a load as httpie writes them: `--print`, `-v`, `--offline`.

import Synchronization
import URLLoading
import URLLoadingIO

/// Writes the messages of one load in order. Used by the load's task, and by observers that it calls.
final class ExchangeOutput: Sendable {
    private struct State: Sendable {
        /// True if two line breaks separate the next message from the last one.
        var isSeparated = false
        /// A response that is the last one until another request begins.
        var pending: HTTPHead?
        /// What was written before the file of the body was open.
        var held: [UInt8] = []
        var began = ContinuousClock.now
        var elapsed = Duration.zero
        var hasRequest = false
        /// The first failure, after which nothing more is written.
        var failure: OutputError?
    }
    /// The destination of messages.
    enum Sink: Sendable, Hashable {
        case descriptor(Int32)
        /// The file of the body; messages are held until it is open, at most 8 MiB.
        case file
    }
    private static let mostHeld = 8 << 20

    private let printed: PrintedParts
    private let sink: Sink
    private let pretty: Pretty
    private let isTerminal: Bool
    private let showsSecrets: Bool
    private let state = Lock(State())

    /// - Returns: `nil` in other grammars.
    init?(_ options: Options, isTerminal: Bool) {
        guard let printed = options.items.prints else { return nil }
        self.printed = printed
        sink =
            options.items.downloads
            ? .descriptor(FileDescriptor.standardError.number)
            : options.output.destination == .standardOutput ? .descriptor(FileDescriptor.standardOutput.number) : .file
        pretty = options.output.pretty ?? Pretty(hasColors: false, isFormatted: false)
        self.isTerminal = isTerminal && sink == .descriptor(FileDescriptor.standardOutput.number)
        showsSecrets = options.output.showsSecrets
    }

    /// True once a request was written.
    var hasRequest: Bool { state.withLock { $0.hasRequest } }

    /// Writes a request that is about to be sent.
    func sends(_ request: Request, _ fields: Headers) {
        attempt { state throws(OutputError) in
            if let head = state.pending, printed.includesAll { try write(head, &state) }
            state.pending = nil
            (state.began, state.hasRequest) = (.now, true)
            guard printed.hasRequest else { return }
            try separate(&state)
            if printed.contains(.requestHead) {
                let text = HeadText.make(request, fields)
                try put(head: showsSecrets ? text : HeadText.withoutSecrets(text), &state)
            }
            if printed.contains(.requestBody) { try write(body: request, fields, &state) }
            try end(hasBody: printed.contains(.requestBody), &state)
        }
    }

    /// Notes a response; an interim one is never shown, as in httpie.
    func received(_ head: HTTPHead) {
        guard head.status.kind != .informational else { return }
        state.withLock { state in (state.pending, state.elapsed) = (head, .now - state.began) }
    }

    /// Writes the head of the last response. Its body follows, written by ``BodyOutput``.
    /// - Returns: what is to be written into the file of the body first.
    func begins(_ head: HTTPHead?) throws(OutputError) -> [UInt8] {
        var held: [UInt8] = []
        attempt { state throws(OutputError) in
            if printed.contains(.head) || printed.contains(.body) || printed.contains(.meta) { try separate(&state) }
            if let head, printed.contains(.head) { try put(head: HeadText.make(head), &state) }
            state.pending = nil
            (held, state.held) = (state.held, [])
        }
        try check()
        return held
    }

    /// Writes what follows the body.
    /// - Returns: what is to be written into the file of the body at its end.
    func ends() throws(OutputError) -> [UInt8] {
        var held: [UInt8] = []
        attempt { state throws(OutputError) in
            if printed.contains(.meta) {
                if printed.contains(.body) { try put("\n\n", &state) }
                try put("Elapsed time: \(state.elapsed / .seconds(1))s\n\n", &state)
            } else {
                try end(hasBody: printed.contains(.body), &state)
            }
            (held, state.held) = (state.held, [])
        }
        try check()
        return held
    }

    /// Returns what was written for a file that no response has opened.
    func takeHeld() throws(OutputError) -> [UInt8] {
        try check()
        return state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
    }

    func check() throws(OutputError) { if let failure = state.withLock({ $0.failure }) { throw failure } }

    // MARK: Messages

    private func attempt(_ step: (inout State) throws(OutputError) -> Void) {
        state.withLock { state in
            guard state.failure == nil else { return }
            do throws(OutputError) { try step(&state) } catch { state.failure = error }
        }
    }

    private func separate(_ state: inout State) throws(OutputError) {
        if state.isSeparated { try put("\n\n", &state) }
        state.isSeparated = false
    }

    private func end(hasBody: Bool, _ state: inout State) throws(OutputError) {
        // On a terminal the line breaks follow each body; elsewhere they separate messages.
        if isTerminal, hasBody { return try put("\n\n", &state) }
        state.isSeparated = hasBody
    }

    private func write(_ head: HTTPHead, _ state: inout State) throws(OutputError) {
        guard printed.contains(.head) else { return }
        try separate(&state)
        try put(head: HeadText.make(head), &state)
        try end(hasBody: printed.contains(.body), &state)
    }

    private func write(body request: Request, _ fields: Headers, _ state: inout State) throws(OutputError) {
        guard let body = request.body else { return }
        let isJSON = (fields[.contentType] ?? "").lowercased().contains("json")
        let formats = isJSON && (pretty.hasColors || pretty.isFormatted)
        var collected: [UInt8] = []
        var failure: OutputError?
        do {
            try body.forEachPiece { piece in
                guard formats || isTerminal, collected.count + piece.count <= Self.mostHeld else {
                    if !collected.isEmpty { try put(collected, &state) }
                    collected = []
                    return try put(Array(piece), &state)
                }
                collected += piece
            }
        } catch let error as OutputError {
            failure = error
        } catch {
            let why = (error as? IOFailure).map { ": \($0.words)" } ?? ""
            failure = OutputError(.read, "the body of the request cannot be read\(why)")
        }
        if let failure { throw failure }
        guard !collected.isEmpty else { return }
        if isTerminal, String(validating: collected, as: UTF8.self) == nil || collected.contains(0) {
            return try put("NOTE: a binary body is not shown on a terminal\n", &state)
        }
        // The printer ends its text with a line break, which a message has not.
        let text = formats ? JSONPrinter.make(collected, pretty).map { Array($0.utf8.dropLast()) } : nil
        try put(text ?? collected, &state)
    }

    private func put(head text: String, _ state: inout State) throws(OutputError) {
        try put(pretty.hasColors ? HeadText.painted(text) : text, &state)
    }

    private func put(_ text: String, _ state: inout State) throws(OutputError) { try put(Array(text.utf8), &state) }

    private func put(_ bytes: [UInt8], _ state: inout State) throws(OutputError) {
        switch sink {
        case .descriptor(let number):
            let name = number == FileDescriptor.standardError.number ? "standard error" : "standard output"
            try FileDescriptor(number: number, name: name).write(bytes)
        case .file:
            guard state.held.count + bytes.count <= Self.mostHeld else {
                throw OutputError(.write, "--print: the requests before the response are too large for a file")
            }
            state.held += bytes
        }
    }
}
