// SPDX-License-Identifier: Apache-2.0

// Sending: turns responses into bytes, counted by section so that a fault can occur between any two of them.

import URLLoadingIO
import URLLoadingWire

extension OriginConnection {
    private static let blockSize = 64 * 1024

    func send(_ answer: HTTPTestServer.Response, to request: HTTPTestServer.RecordedRequest) async throws(Ending) {
        for interim in answer.interim { try await sendInterim(interim) }
        if let script = answer.script { return try await play(script) }
        let hasBody = request.method != .head && !answer.status.forbidsContent
        try await enter(.head)
        try await write(.head) { codec, output throws(WireViolation) in
            try codec.sendResponse(
                status: answer.status, headers: answer.headers, framing: answer.framing, into: &output)
        }
        try await applyHeadFaults()
        try await enter(.body)
        if hasBody { try await send(answer.body) }
        try await flush()
        section = .none
    }

    func sendInterim(_ interim: HTTPTestServer.Response.Interim) async throws(Ending) {
        try await write(.none) { codec, output throws(WireViolation) in
            try codec.sendResponse(status: interim.status, headers: interim.headers, into: &output)
        }
        try await flush()
        try await pause(interim.pause)
    }

    private func send(_ body: HTTPTestServer.Response.Body) async throws(Ending) {
        switch body {
        case .none: try await end()
        case .bytes(let bytes):
            try await data(bytes)
            try await end()
        case .chunks(let pieces, let trailers):
            try await data(pieces)
            try await end(trailers)
        case .untilClose(let pieces):
            try await data(pieces)
            try await flush()
            throw .close
        case .declared(_, let bytes):
            // Bypasses the codec, which would refuse a wrong length.
            try await put(bytes)
            try await flush()
            throw .close
        case .repeated(let byte, let count, _):
            let block = [UInt8](repeating: byte, count: Int(min(max(0, count), Int64(Self.blockSize))))
            var left = max(0, count)
            while left > 0 {
                let size = Int(min(left, Int64(block.count)))
                try await data(size == block.count ? block : Array(block[..<size]))
                left -= Int64(size)
            }
            try await end()
        }
    }

    /// Sends scripted bytes; returns only if another request may follow.
    func play(_ script: HTTPTestServer.Response.Script) async throws(Ending) {
        try await enter(.body)
        for piece in script.pieces {
            switch piece {
            case .bytes(let bytes): try await put(bytes)
            case .pause(let duration): try await pause(duration)
            }
        }
        try await flush()
        section = .none
        switch script.ending {
        case .close: throw .close
        case .reset:
            socket.abort()
            throw .gone
        case .stall: try await stall()
        // The codec has not seen the response, so it is given a short one whose bytes are discarded.
        case .next: try? codec.sendResponse(status: .noContent, headers: Headers(), into: &output)
        }
        output = []
    }

    private func data(_ pieces: [HTTPTestServer.Response.Piece]) async throws(Ending) {
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): try await data(bytes)
            case .pause(let duration): try await pause(duration)
            }
        }
    }

    private func data(_ bytes: [UInt8]) async throws(Ending) {
        try await write(.body) { codec, output throws(WireViolation) in
            try codec.sendData(count: bytes.count, into: &output)
            output += bytes
            codec.sendDataEnd(into: &output)
        }
    }

    private func end(_ trailers: Headers = Headers()) async throws(Ending) {
        try await write(.body) { codec, output throws(WireViolation) in
            try codec.sendEnd(trailers: trailers, into: &output)
        }
    }

    /// Writes a part of the response. One that the codec refuses closes the connection, so that the test notices at
    /// once.
    private func write(
        _ section: Section, _ change: (inout HTTP1Codec, inout [UInt8]) throws(WireViolation) -> Void
    ) async throws(Ending) {
        var bytes: [UInt8] = []
        do throws(WireViolation) { try change(&codec, &bytes) } catch { throw .close }
        if section == .none { output += bytes } else { try await put(bytes) }
    }

    /// Adds bytes to the current section, and applies the faults within them.
    private func put(_ bytes: [UInt8]) async throws(Ending) {
        var rest = bytes[...]
        while let (index, place) = nextFault(), place <= sent + Int64(rest.count) {
            let count = Int(max(0, place - sent))
            output += rest.prefix(count)
            rest = rest.dropFirst(count)
            sent += Int64(count)
            try await inject(faults.remove(at: index))
        }
        output += rest
        sent += Int64(rest.count)
        if output.count >= Self.blockSize { try await flush() }
    }

    /// Returns the next fault in this section.
    private func nextFault() -> (index: Int, place: Int64)? {
        guard !faults.isEmpty else { return nil }
        var next: (index: Int, place: Int64)?
        for (index, fault) in faults.enumerated() {
            guard let place = fault.point.place(in: section), place < next?.place ?? .max else { continue }
            next = (index, place)
        }
        return next
    }

    private func enter(_ section: Section) async throws(Ending) {
        self.section = section
        sent = 0
        if section == .body, faults.isEmpty { return }
        // A fault after zero bytes must occur even if none are sent.
        try await put([])
    }

    /// Applies faults beyond the end of the head at its end.
    private func applyHeadFaults() async throws(Ending) {
        while let (index, _) = nextFault() { try await inject(faults.remove(at: index)) }
    }

    func pause(_ duration: Duration) async throws(Ending) {
        guard duration > .zero else { return }
        let clock = LoopClock(origin.configuration.clock?.time)
        // Taken before the client can notice the pause, so that a test that moves the clock moves it for both sides.
        let begun = clock.now()
        try await flush()
        let moment = (clock.manual == nil ? clock.now() : begun) + duration.inNanoseconds
        do throws(IOFailure) { try await clock.sleep(until: moment, token) } catch { throw .close }
    }

    func flush() async throws(Ending) {
        var done = 0
        while done < output.count {
            guard token.stopReason == nil else { throw .close }
            switch attempt(from: done) {
            case .success(.moved(let count)): done += count
            case .success(.blocked(let interest)): await Poller.shared.park(transport.slot, interest, token)
            case .success(.end), .failure: throw .close
            }
        }
        output.removeAll(keepingCapacity: output.capacity <= 4096)
    }

    private func attempt(from start: Int) -> Result<Progress, IOFailure> {
        output.withUnsafeBytes { bytes in
            Result { () throws(IOFailure) in try transport.write(UnsafeRawBufferPointer(rebasing: bytes[start...])) }
        }
    }
}

extension HTTPTestServer.Response {
    fileprivate var framing: HTTP1BodyFraming {
        switch body {
        case .none: .none
        case .bytes(let bytes): .length(Int64(bytes.count))
        case .chunks: .chunked
        case .untilClose: .untilClose
        case .declared(let length, _): .length(length)
        case .repeated(_, let count, let chunked): chunked ? .chunked : .length(max(0, count))
        }
    }
}

extension HTTPTestServer.Fault.Point {
    fileprivate func place(in section: OriginConnection.Section) -> Int64? {
        switch (self, section) {
        case (.responseHead(let after), .head): Int64(after)
        case (.responseBody(let after), .body): after
        default: nil
        }
    }
}
