// A body made ready for one request: files are open and measured, so that its length can be said in the
// head. Opened anew for each request it is sent with.

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

    /// Opens the body of a request; a demanded one has been asked for before.
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
        case .demanded:
            // What a decision answers is not asked for again.
            throw LoadError(.badRequest, phase: .preparing, party: .local, detail: "newBody demands a body itself")
        }
    }

    static func open(_ part: RequestBody.Part, _ token: StopToken) async throws(LoadError) -> (FileReader, Range<Int64>) {
        guard case .file(let path, let wanted) = part else { throw LoadError(.cannotReadFile, phase: .preparing, party: .local) }
        let opened = await BlockingThreads.files.call(token) { () -> Result<FileReader, IOFailure> in
            Result { () throws(IOFailure) in try FileReader(path: path) }
        }
        guard let opened else { throw LoadError(token.stopReason ?? .cancelled, phase: .preparing) }
        let reader: FileReader
        do { reader = try opened.get() } catch { throw LoadError(file: error, .preparing).naming(path) }
        guard reader.kind == .file else {
            throw LoadError(
                reader.kind == .directory ? .fileIsDirectory : .cannotReadFile, phase: .preparing, party: .local,
                detail: "only a regular file can be sent"
            ).naming(path)
        }
        let range = wanted ?? 0..<reader.size
        guard range.lowerBound >= 0, range.upperBound <= reader.size else {
            throw LoadError(
                .rangeNotSatisfiable, phase: .preparing, party: .local, detail: "of \(reader.size) bytes"
            ).naming(path)
        }
        return (reader, range)
    }

    /// Digits; `nil` if a file cannot be read, or nobody waits any more. Blocks.
    static func hash(of parts: [Part], _ kind: DigestHash, _ token: StopToken) -> String? {
        var running = DigestHash.Running(kind)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
        defer { buffer.deallocate() }
        for part in parts {
            switch part {
            case .data(let data): data.withUnsafeBytes { running.update($0) }
            case .file(let reader, var range):
                while !range.isEmpty {
                    let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(buffer.count), Int64(range.count)))])
                    guard token.stopReason == nil, let count = try? reader.read(into: room, at: range.lowerBound), count > 0 else { return nil }
                    running.update(UnsafeRawBufferPointer(rebasing: room[..<count]))
                    range = range.lowerBound + Int64(count)..<range.upperBound
                }
            }
        }
        return running.finish()
    }

    /// Of a sequence made for this alone; `nil` if it fails, or nobody waits any more.
    static func hash(of make: @escaping @Sendable () -> AnyChunkIterator, _ kind: DigestHash, _ load: LoadControl) async -> String? {
        let hashed = await Interruption<String?>.run(load) {
            let (pieces, running) = (make(), BodyHash(kind))
            while true {
                guard let next = try? await pieces.next() as Chunk?? else { return nil }
                guard let piece = next else { return running.finish() }
                running.update(piece)
            }
        }
        guard case .answered(let digits) = hashed else { return nil }
        return digits
    }

    static func fileChanged(_ missing: some BinaryInteger) -> LoadError {
        LoadError(.requestBodyFailed, phase: .sending, party: .system, detail: "the file became shorter: \(missing) bytes are missing")
    }
}

extension LoadError {
    /// Says which of the files of a request it is about.
    fileprivate func naming(_ path: String) -> LoadError {
        LoadError(reason, phase: phase, party: party, url: url, detail: detail.map { "\(path): \($0)" } ?? path)
    }
}

/// A hash of pieces, for one task at a time.
final class BodyHash {
    private var running: DigestHash.Running

    init(_ kind: DigestHash) { running = DigestHash.Running(kind) }

    func update(_ piece: Chunk) { piece.withUnsafeBytes { running.update($0) } }
    func finish() -> String? { running.finish() }
}
