// SPDX-License-Identifier: Apache-2.0

// Receiving: turns bytes into events. Bytes after a message never become the response to the next request.

extension HTTP1Codec {
    /// Returns the next event in `input`, the bytes not consumed so far; `nil` if more input is needed.
    ///
    /// `consumed` is set on every call, also with `nil`: the caller drops that many bytes from the front before the
    /// next call, after using a range of the body. After a violation the connection is unusable.
    package mutating func next(
        _ input: UnsafeRawBufferPointer, consumed: inout Int
    ) throws(WireViolation) -> HTTP1Event? {
        consumed = 0
        do throws(WireViolation) {
            // Apart from the loop, which would copy the event.
            if receiving == .head { return try receiveHead(input, &consumed) }
            return try step(input, &consumed)
        } catch {
            receiving = .failed
            mustClose = true
            throw error
        }
    }

    /// Reports the end of the peer's stream. Call it after all input; throws `prematureEnd` inside a message.
    package mutating func receiveEnd() throws(WireViolation) -> HTTP1Event? {
        mustClose = true
        switch receiving {
        case .untilClose:
            receiving = .ended
            return .end(trailers: Headers())
        case .idle, .ended, .switched:
            return nil
        case .head where role == .server && !hasReceivedBytes:
            return nil
        case .failed:
            throw .local(.illegalState, "RFC 9112 8")
        default:
            receiving = .failed
            throw .remote(.prematureEnd, "RFC 9112 8")
        }
    }

    private mutating func step(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> HTTP1Event? {
        while true {
            switch receiving {
            case .head: return try receiveHead(input, &consumed)
            case .fixed(0): return finish(input, consumed, trailers: Headers())
            case .fixed(let remaining):
                guard let data = takeData(input, &consumed, remaining) else { return nil }
                receiving = .fixed(remaining: remaining - Int64(data.count))
                return .data(data)
            case .chunkHeader:
                guard try receiveChunkHeader(input, &consumed) else { return nil }
            case .chunkData(let remaining):
                guard let data = takeData(input, &consumed, remaining) else { return nil }
                exchange.bodyOffset &+= Int64(data.count)
                let left = remaining - Int64(data.count)
                receiving = left == 0 ? .chunkEnd : .chunkData(remaining: left)
                return .data(data)
            case .chunkEnd:
                guard try receiveChunkEnd(input, &consumed) else { return nil }
            case .trailers: return try receiveTrailers(input, &consumed)
            case .untilClose: return takeData(input, &consumed, .max).map { .data($0) }
            case .idle:
                guard input.isEmpty else { throw .remote(.unexpectedResponse, "RFC 9112 9.3") }
                return nil
            case .ended:
                noteLeftover(input, 0)
                return nil
            case .switched: return nil
            case .failed: throw .local(.illegalState, "RFC 9112 8")
            }
        }
    }

    private func takeData(_ input: UnsafeRawBufferPointer, _ consumed: inout Int, _ remaining: Int64) -> Range<Int>? {
        let count = Int(min(Int64(input.count - consumed), remaining))
        guard count > 0 else { return nil }
        defer { consumed += count }
        return consumed..<consumed + count
    }

    private mutating func finish(_ input: UnsafeRawBufferPointer, _ consumed: Int, trailers: Headers) -> HTTP1Event {
        receiving = .ended
        noteLeftover(input, consumed)
        return .end(trailers: trailers)
    }

    /// Marks the connection as not reusable if bytes follow a response: unrequested bytes must not become the response
    /// to the next request. For a server they are a pipelined request.
    private mutating func noteLeftover(_ input: UnsafeRawBufferPointer, _ consumed: Int) {
        if role == .client, input.count > consumed { mustClose = true }
    }

    // MARK: Chunks (RFC 9112 §7.1)

    private mutating func receiveChunkHeader(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> Bool {
        let found: HTTP1ChunkHeader?
        do throws(WireViolation) {
            found = try HTTP1ChunkHeader.parse(input, at: consumed, allowance: exchange.extensionAllowance, role: role)
        } catch { throw error.inBody(after: exchange.bodyOffset) }
        guard let header = found else { return false }
        // What is allowed grows with the data, so that only chunks of little but extensions exhaust it: a server that
        // pads each size of a large body does not.
        let granted = header.size < Int64(limits.chunkExtensionSize) ? 16 + 2 * Int(header.size) : .max / 2
        exchange.extensionAllowance = min(
            limits.chunkExtensionSize, exchange.extensionAllowance - header.extensionSize + granted)
        exchange.bodyOffset &+= Int64(header.end - consumed)
        consumed = header.end
        receiving = header.size == 0 ? .trailers : .chunkData(remaining: header.size)
        scanner = HTTP1SectionScanner()
        return true
    }

    private mutating func receiveChunkEnd(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> Bool {
        let rest = input.count - consumed
        guard rest > 0 else { return false }
        guard input[consumed] == .cr, rest == 1 || input[consumed + 1] == .lf else {
            throw WireViolation.remote(input[consumed] == .lf ? .bareLineFeed : .malformedChunkEnd, "RFC 9112 7.1")
                .inBody(after: exchange.bodyOffset)
        }
        guard rest > 1 else { return false }
        consumed += 2
        exchange.bodyOffset &+= 2
        receiving = .chunkHeader
        return true
    }

    /// Reads the trailers (RFC 9112 §7.1.2). They are reported separately from the header fields, never merged (RFC
    /// 9110 §6.5.1).
    private mutating func receiveTrailers(
        _ input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WireViolation) -> HTTP1Event? {
        do throws(WireViolation) {
            guard
                let size = try scanner.findEnd(
                    in: input, from: consumed, limit: limits.trailerSize, maxLines: limits.fieldCount,
                    tooLarge: .trailersTooLarge)
            else { return nil }
            let parser = try HTTP1FieldParser(
                input, section: consumed..<consumed + size - 2, lines: scanner.lines, role: role,
                messageStart: consumed)
            consumed += size
            return finish(input, consumed, trailers: parser.headers)
        } catch {
            // The offset of this one is the limit.
            throw error.code == .trailersTooLarge ? error : error.inBody(after: exchange.bodyOffset)
        }
    }
}
