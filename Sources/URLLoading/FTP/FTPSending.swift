// A body on its way into a server's file. Pulled no faster than the server takes it; while it goes out the control
// connection is listened to, where a server says that its disk is full.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

final class FTPSending {
    private let socket: any Transport
    private let data: any Transport
    private let connection: FTPConnection
    private let load: Load
    private let length: Int64?
    private let isText: Bool
    private var endsInCR = false
    /// Bytes of the body that have gone out.
    private(set) var sent: Int64 = 0

    private static let pieceSize = 256 * 1024

    /// - Parameter length: bytes that the body has; `nil` if that is not known.
    init(
        _ socket: any Transport, _ data: any Transport, _ connection: FTPConnection, _ load: Load, length: Int64?,
        isText: Bool
    ) {
        self.length = length
        self.socket = socket
        self.data = data
        self.connection = connection
        self.load = load
        self.isText = isText
    }

    /// All of it, and the end.
    func send(_ body: OutgoingBody) async throws(LoadError) {
        connection.transport.slot.relay(to: socket.slot)
        socket.slot.hearReadsWhileWriting(true)
        defer {
            connection.transport.slot.unrelay()
            socket.slot.hearReadsWhileWriting(false)
        }
        switch body {
        case .data(let data): try await send(data)
        case .parts(let parts):
            for part in parts {
                switch part {
                case .data(let data): try await send(data)
                case .file(let reader, let range): try await send(reader, range)
                }
            }
        case .stream(let length, _, let pieces): try await send(pieces, length)
        }
        try await end()
    }

    private func send(_ bytes: Data) async throws(LoadError) {
        guard !bytes.isEmpty else { return }
        try await send(bytes.withUnsafeBytes { Chunk(copying: $0) })
    }

    private func send(_ reader: FileReader, _ range: Range<Int64>) async throws(LoadError) {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let wanted = Int(min(Int64(Self.pieceSize), range.upperBound - offset))
            let (storage, start) = (ChunkStorage(capacity: wanted), offset)
            let read = await BlockingThreads.files.call(load) { () -> Result<Int, IOFailure> in
                Result { () throws(IOFailure) in try reader.read(into: storage.room(from: 0), at: start) }
            }
            guard let read else { throw LoadError(load.stopReason ?? .cancelled, phase: .sending) }
            let count: Int
            do { count = try read.get() } catch { throw LoadError(file: error, .sending) }
            guard count > 0 else { throw OutgoingBody.fileChanged(range.upperBound - offset) }
            offset += Int64(count)
            try await send(Chunk(storage: storage, range: 0..<min(count, wanted)))
        }
    }

    private func send(_ pieces: AnyChunkIterator, _ length: Int64?) async throws(LoadError) {
        var rest = length ?? .max
        while true {
            try await load.goesOn(.sending)
            switch await pieces.next(for: load) {
            case .success(let piece?):
                rest -= Int64(piece.count)
                guard rest >= 0 else { throw Self.wrongLength }
                if piece.count > 0 { try await send(piece) }
            case .success(nil):
                guard length == nil || rest == 0 else { throw Self.wrongLength }
                return
            case .failure(let error):
                if let reason = load.stopReason { throw LoadError(reason, phase: .sending) }
                throw (error as? LoadError) ?? LoadError(.requestBodyFailed, phase: .sending, party: .local, underlying: error)
            }
        }
    }

    private static var wrongLength: LoadError {
        LoadError(.requestBodyFailed, phase: .sending, party: .local, detail: "the body has another length than announced")
    }

    // MARK: Bytes

    private func send(_ piece: Chunk) async throws(LoadError) {
        guard isText else { return try await send(piece, counting: true) }
        let lines = asLines(piece)
        try await send(lines.withUnsafeBytes { Chunk(copying: $0) }, counting: false)
        count(piece.count)
    }

    private func send(_ piece: Chunk, counting counts: Bool) async throws(LoadError) {
        var range = piece.range
        while !range.isEmpty {
            try await load.goesOn(.sending)
            let outcome = Result { () throws(IOFailure) in try data.write(piece.storage.bytes(range)) }
            switch outcome {
            case .success(.moved(let moved)):
                range = range.lowerBound + moved..<range.upperBound
                if counts { count(moved) }
            case .success(.blocked(let interest)):
                try connection.listen()
                await Poller.shared.park(data.slot, interest, load)
            case .success(.end): try await lost(LoadError(.connectionLost, phase: .sending, party: .peer))
            case .failure(let failure): try await lost(LoadError(failure, .sending))
            }
        }
    }

    private func count(_ moved: Int) {
        sent += Int64(moved)
        if moved > 0 { load.sent(ByteCount(count: moved, total: sent, expected: length)) }
    }

    /// Who closes the data connection says why on the other.
    private func lost(_ error: LoadError) async throws(LoadError) {
        if error.reason == .connectionLost { try await connection.finish(load) }
        throw error
    }

    /// The end of the data connection is the end of the file. It is not closed before the server has answered: what it
    /// sends meanwhile (the tickets of TLS) would be answered with a reset, and that might cost the last bytes.
    private func end() async throws(LoadError) {
        while true {
            try await load.goesOn(.sending)
            let progress = Result { () throws(IOFailure) in try data.endWriting() }
            guard case .blocked(let interest) = try progress.translated(.sending) else { break }
            await Poller.shared.park(data.slot, interest, load)
        }
        socket.finishWriting()
    }

    /// LF becomes CR LF; what is CR LF already stays so.
    private func asLines(_ piece: Chunk) -> [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(piece.count + piece.count / 16)
        for byte in piece.storage.bytes(piece.range) {
            if byte == UInt8(ascii: "\n"), !endsInCR { lines.append(UInt8(ascii: "\r")) }
            lines.append(byte)
            endsInCR = byte == UInt8(ascii: "\r")
        }
        return lines
    }
}
