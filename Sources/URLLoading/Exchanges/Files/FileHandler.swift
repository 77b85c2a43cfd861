// SPDX-License-Identifier: Apache-2.0

// In this folder: file and data URLs

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// Loads `file` URLs (RFC 8089) of this machine, as a stream: the file is never held in memory as a whole.
///
/// Every session has one that refuses directories; to list them, register one that does:
///
/// ```swift
/// configuration.handlers = [FileHandler(directories: .list)]
/// let (data, response) = try await session.data(from: URL(filePath: "/etc/hosts"))
/// ```
/// A `Range` field with one range of bytes is honoured (RFC 9110 §14): ``Response/fileRange`` names the part that was
/// loaded. Symbolic links are followed; pipes, sockets and devices are refused. Servers cannot redirect to files.
public struct FileHandler: ProtocolHandler {
    /// The treatment of directories.
    public enum Directories: Sendable {
        /// Throws ``LoadError/Reason/fileIsDirectory``.
        case refuse
        /// Answers with the URLs of the entries, sorted, one a line, as `text/uri-list` (RFC 2483 §5). Those of
        /// directories end with a slash. At most 100,000 entries.
        case list
    }
    private let directories: Directories

    /// Creates a handler that refuses directories, or lists them.
    public init(directories: Directories = .refuse) { self.directories = directories }

    public func canHandle(_ request: Request) -> Bool { request.url.scheme?.lowercased() == "file" }
}

extension FileHandler: DirectHandler {
    func exchange(_ hop: Hop, for load: LoadContext) async throws(LoadError) -> any Exchange {
        let request = hop.request
        do throws(LoadError) {
            try request.requireReadMethod()
            let path = try Self.path(of: request.url)
            let reader = try await open(path, load)
            switch reader.kind {
            case .file: return try answer(request, reader, load)
            case .directory: return try await list(request, path, load)
            case .other:
                throw LoadError(.cannotReadFile, phase: .connecting, party: .system, detail: "a pipe, socket or device")
            }
        } catch {
            throw error.at(request.url)
        }
    }

    private static func path(of url: URL) throws(LoadError) -> String {
        let host = url.host() ?? ""
        guard host.isEmpty || host.lowercased() == "localhost" else {
            throw LoadError(.badURL, phase: .preparing, party: .local, detail: "files of other hosts cannot be loaded")
        }
        let path = url.path(percentEncoded: false)
        guard path.hasPrefix("/"), !path.utf8.contains(0), !url.absoluteString.lowercased().contains("%00") else {
            throw LoadError(.badURL, phase: .preparing, party: .local, detail: "the URL has no file path")
        }
        return path
    }

    private func open(_ path: String, _ load: LoadContext) async throws(LoadError) -> FileReader {
        let opened = await BlockingThreads.files.call(load.handle) { () -> Result<FileReader, IOFailure> in
            Result { () throws(IOFailure) in try FileReader(path: path) }
        }
        guard let opened else { throw LoadError(load.stopReason ?? .cancelled, phase: .connecting) }
        do { return try opened.get() } catch { throw LoadError(file: error) }
    }

    private func answer(_ request: Request, _ reader: FileReader, _ load: LoadContext) throws(LoadError) -> any Exchange
    {
        var range = 0..<reader.size
        // Several ranges would need a multipart response. The whole file is sent instead, which RFC 9110 §14.2 allows.
        let asked = request.headers[.range].flatMap { ByteRange.parse($0) }
        if let asked, asked.count == 1 {
            guard let part = asked[0].resolved(for: reader.size) else {
                throw LoadError(.rangeNotSatisfiable, phase: .waiting, party: .local, detail: "of \(reader.size) bytes")
            }
            range = part
        }
        let type = FileTypes.mediaType(ofName: request.url.lastPathComponent)
        var response = Response(url: request.url, mediaType: type, expectedLength: Int64(range.count))
        response.properties[FileRange.self] = asked?.count == 1 ? range : nil
        return FileExchange(
            response, reader, request.method == .head ? range.lowerBound..<range.lowerBound : range, load)
    }

    private func list(_ request: Request, _ path: String, _ load: LoadContext) async throws(LoadError) -> any Exchange {
        guard case .list = directories else {
            throw LoadError(.fileIsDirectory, phase: .connecting, party: .local)
        }
        let listed = await BlockingThreads.files.call(load.handle) { Self.entries(of: path) }
        guard let listed else { throw LoadError(load.stopReason ?? .cancelled, phase: .connecting) }
        guard let entries = listed, entries.count <= 100_000 else {
            throw LoadError(
                .cannotReadFile, phase: .receiving, party: .system, detail: "the directory cannot be listed")
        }
        let text = entries.map { $0 + "\r\n" }.joined()
        let response = Response(
            url: request.url, mediaType: MediaType("text/uri-list"), expectedLength: Int64(text.utf8.count))
        return WholeExchange(response, request.method == .head ? Data() : Data(text.utf8), load)
    }

    private static func entries(of path: String) -> [String]? {
        let base = URL(filePath: path, directoryHint: .isDirectory)
        return try? FileManager.default.contentsOfDirectory(atPath: path).sorted().map { name in
            var isDirectory = false
            _ = FileManager.default.fileExists(atPath: "\(path)/\(name)", isDirectory: &isDirectory)
            return base.appending(path: name, directoryHint: isDirectory ? .isDirectory : .notDirectory).absoluteString
        }
    }
}

/// The key of the range of a file that a response contains.
enum FileRange: PropertyKey { typealias Value = Range<Int64> }

extension Response {
    /// The range of the file, in byte offsets, that a `file` load with a `Range` field returns; `nil` for the whole
    /// file.
    public var fileRange: Range<Int64>? { properties[FileRange.self] }
}

/// An exchange that reads a range of an open file.
private final class FileExchange: LocalExchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    let response: Response
    private let owner: LoadContext
    private var reader: FileReader?
    private var range: Range<Int64>
    private var storage: ChunkStorage?
    private var pending = PendingChunk()

    private static let pieceSize = 256 * 1024

    init(_ response: Response, _ reader: FileReader, _ range: Range<Int64>, _ load: LoadContext) {
        self.response = response
        self.reader = reader
        self.range = range
        owner = load
    }

    var load: LoadContext? { owner }

    func buffered(atMost most: Int) -> BodyPiece? {
        if pending.chunk == nil, range.isEmpty || reader == nil { return .end }
        return pending.take(atMost: most)
    }

    func fill(atMost most: Int) async throws(LoadError) {
        if owner.isSuspended { await owner.handle.untilResumed() }
        if let reason = owner.stopReason { throw LoadError(reason, phase: .receiving) }
        guard pending.chunk == nil, let reader else { return }
        let wanted = Int(min(Int64(Self.pieceSize), Int64(max(1, most)), Int64(range.count)))
        if !isKnownUniquelyReferenced(&storage) || storage?.capacity ?? 0 < wanted {
            storage = ChunkStorage(capacity: wanted)
        }
        guard let storage else { return }
        let count = try await read(reader, storage, wanted)
        guard count > 0 else {
            throw LoadError(.fileChanged, phase: .receiving, party: .system, detail: "\(range.count) bytes are missing")
        }
        range = range.lowerBound + Int64(count)..<range.upperBound
        pending.chunk = Chunk(storage: storage, range: 0..<count)
    }

    private func read(_ reader: FileReader, _ storage: ChunkStorage, _ wanted: Int) async throws(LoadError) -> Int {
        let offset = range.lowerBound
        do throws(IOFailure) {
            let room = UnsafeMutableRawBufferPointer(rebasing: storage.room(from: 0)[..<wanted])
            if let count = try reader.readNow(into: room, at: offset) { return count }
        } catch {
            throw LoadError(file: error)
        }
        // The closure keeps the reader and the storage alive, even if the load stops waiting.
        let read = await BlockingThreads.files.call(owner.handle) { () -> Result<Int, IOFailure> in
            Result { () throws(IOFailure) in
                try reader.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: storage.room(from: 0)[..<wanted]), at: offset)
            }
        }
        guard let read else {
            self.storage = nil
            throw LoadError(owner.stopReason ?? .cancelled, phase: .receiving)
        }
        do { return try read.get() } catch { throw LoadError(file: error) }
    }

    func release() { (reader, pending.chunk, storage) = (nil, nil, nil) }
}
