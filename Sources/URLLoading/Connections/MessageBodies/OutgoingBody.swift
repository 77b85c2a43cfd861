// SPDX-License-Identifier: Apache-2.0

// In this folder: the body of a request while it is sent, and of a response while it is received

// A body prepared for one request: its files are open and measured, so that the head can state its length. It is opened
// anew for each request that sends it.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

enum OutgoingBody: Sendable {
    case data(Data)
    case parts([Part])
    case stream(length: Int64?, trailers: (@Sendable () -> Headers)?, AnyChunkIterator)

    enum Part: Sendable {
        case data(Data)
        case file(FileReader, Range<Int64>)

        var length: Int64 {
            switch self {
            case .data(let data): Int64(data.count)
            case .file(_, let range): Int64(range.count)
            }
        }
    }

    var length: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .parts(let parts): parts.reduce(0) { $0 + $1.length }
        case .stream(let length, _, _): length
        }
    }

    /// Opens the body of a request. A body of `bodyProvider` has been resolved before.
    static func open(_ body: RequestBody, _ token: StopToken) async throws(LoadError) -> OutgoingBody {
        switch body.content {
        case .data(let data): return .data(data)
        case .stream(let length, let trailers, let make): return .stream(length: length, trailers: trailers, make())
        case .parts(let parts):
            var opened: [Part] = []
            for part in parts {
                switch part {
                case .data(let data): opened.append(.data(data))
                case .file:
                    let (reader, range) = try await open(part, token)
                    opened.append(.file(reader, range))
                }
            }
            return .parts(opened)
        case .provided:
            // The body that `bodyProvider` returns must not refer to the provider again.
            throw LoadError(.badRequest, phase: .preparing, party: .local, detail: "bodyProvider returned .provided")
        }
    }

    static func open(_ part: RequestBody.Part, _ token: StopToken) async throws(LoadError) -> (FileReader, Range<Int64>)
    {
        guard case .file(let path, let wanted) = part else {
            throw LoadError(.cannotReadFile, phase: .preparing, party: .local)
        }
        let opened = await BlockingThreads.files.call(token) { () -> Result<FileReader, IOFailure> in
            Result { () throws(IOFailure) in try FileReader(path: path) }
        }
        guard let opened else { throw LoadError(token.stopReason ?? .cancelled, phase: .preparing) }
        let reader: FileReader
        do { reader = try opened.get() } catch { throw LoadError(file: error, .preparing).withPath(path) }
        guard reader.kind == .file else {
            throw LoadError(
                reader.kind == .directory ? .fileIsDirectory : .cannotReadFile, phase: .preparing, party: .local,
                detail: "only a regular file can be sent"
            ).withPath(path)
        }
        let range = wanted ?? 0..<reader.size
        guard range.lowerBound >= 0, range.upperBound <= reader.size else {
            throw LoadError(
                .rangeNotSatisfiable, phase: .preparing, party: .local, detail: "of \(reader.size) bytes"
            ).withPath(path)
        }
        return (reader, range)
    }

    static func fileChanged(_ path: String, missing: some BinaryInteger) -> LoadError {
        LoadError(
            .requestBodyFailed, phase: .sending, party: .system,
            detail: "the file became shorter: \(missing) bytes are missing"
        ).withPath(path)
    }
}

extension LoadError {
    /// Returns the error with the path of the request's file in its detail.
    fileprivate func withPath(_ path: String) -> LoadError {
        with(detail: detail.map { "\(path): \($0)" } ?? path)
    }
}
