// SPDX-License-Identifier: Apache-2.0

// Reading and writing of a stream. Each side admits one call at a time.

import FoundationEssentials
import Synchronization
import URLLoadingIO

extension StreamDriver {
    // MARK: Reading

    func read(atLeast: Int, atMost: Int, timeout limit: Duration?) async throws(LoadError) -> (Data, isEnd: Bool) {
        try enter(.input)
        defer { leave(.input) }
        let least = max(0, atLeast)
        let most = max(1, least, atMost)
        try await run(.input, timeout: limit) { () throws(LoadError) in try receive(least, most) }
        try await yieldIfDue()
        let data = buffer.take(atMost: most)
        return (data, buffer.isEmpty && hasEnded)
    }

    func next() async throws(LoadError) -> Chunk? {
        try enter(.input)
        defer { leave(.input) }
        try await run(.input, timeout: nil) { () throws(LoadError) in try receive(1, .max) }
        try await yieldIfDue()
        return buffer.takeChunk()
    }

    private var hasEnded: Bool {
        if case .ended = state.withLock({ $0.input }) { true } else { false }
    }

    /// Reads no more than the call asked for: the rest stays in the kernel, and TCP flow control slows the peer.
    private func receive(_ least: Int, _ most: Int) throws(LoadError) -> StreamStep {
        let (input, outcome) = state.withLock { ($0.input, $0.outcome) }
        if case .closed = input { throw failure(.streamClosed, .input) }
        if stopReason != nil, let error = ending(.input) { throw error }
        while buffer.isEmpty || buffer.count < least {
            if case .ended = input { return .done }
            if let error = outcome?.error { throw error }
            guard let transport = state.withLock({ $0.readyTransport })
            else { return least == 0 ? .done : .notReady }
            switch try receive(from: transport, atMost: most - buffer.count) {
            case .moved: break
            case .end: return .done
            case .blocked(let interest): return least == 0 ? .done : .blocked(interest)
            }
        }
        return .done
    }

    private func receive(from transport: any Transport, atMost most: Int) throws(LoadError) -> Progress {
        let room = buffer.room(atMost: most)
        do throws(IOFailure) {
            let progress = try transport.read(into: room)
            switch progress {
            case .moved(let count):
                buffer.moved(count, into: room.count)
                receivedInTurn += count
                receivedCount.add(Int64(count), ordering: .relaxed)
                moved()
            case .end: change { $0.input = .ended }
            case .blocked: break
            }
            return progress
        } catch {
            let error = failure(or: LoadError(error))
            change { $0.input = .failed(error) }
            throw error
        }
    }

    private func change(_ change: (inout sending StreamState) -> Void) {
        state.withLock { change(&$0) }
        settle()
    }

    /// Yields after each 4 MiB, because a peer faster than its reader never makes the reader wait.
    private func yieldIfDue() async throws(LoadError) {
        guard receivedInTurn > 4 << 20 else { return }
        receivedInTurn = 0
        await Task.yield()
    }

    /// Closes the input. A read in progress is woken and fails.
    func closeRead() {
        let transport = state.withLock { state in
            switch state.input {
            case .open, .ended: state.input = .closed
            case .closed, .failed: break
            }
            return state.link?.transport
        }
        transport?.slot.wake()
        settle()
    }

    // MARK: Writing

    func write<Bytes: ContiguousBytes>(_ bytes: Bytes, timeout limit: Duration?) async throws(LoadError) {
        try enter(.output)
        defer { leave(.output) }
        let count = bytes.withUnsafeBytes { $0.count }
        var sent = 0
        var isUnderWay = false
        do throws(LoadError) {
            try await run(.output, timeout: limit) { () throws(LoadError) in
                let transport: any Transport
                switch try outlet() {
                case .ready(let ready): transport = ready
                case .step(let step): return step
                }
                while sent < count {
                    let progress = try move { () throws(IOFailure) in
                        try bytes.attempt(from: sent) { (rest) throws(IOFailure) in try transport.write(rest) }
                    }
                    guard case .moved(let moved) = progress else {
                        // After a partial write of a TLS record the number of plaintext bytes sent is unknown.
                        isUnderWay = isUnderWay || transport is TLSTransport
                        return try blocked(progress)
                    }
                    sent += moved
                    isUnderWay = true
                    sentCount.add(Int64(moved), ordering: .relaxed)
                    self.moved()
                }
                return .done
            }
        } catch {
            if isUnderWay, sent < count { abandon() }
            throw error
        }
    }

    func closeWrite() async throws(LoadError) {
        try enter(.output)
        defer { leave(.output) }
        if case .closed = state.withLock({ $0.output }) { return }
        var isUnderWay = false
        do throws(LoadError) {
            try await run(.output, timeout: nil) { () throws(LoadError) in
                switch try outlet() {
                case .step(let step): return step
                case .ready(let transport):
                    let progress = try move { () throws(IOFailure) in try transport.endWriting() }
                    guard case .moved = progress else {
                        isUnderWay = true
                        return try blocked(progress)
                    }
                    return .done
                }
            }
        } catch {
            if isUnderWay { abandon() }
            throw error
        }
        change { $0.output = .closed }
    }

    private enum Outlet {
        case ready(any Transport)
        case step(StreamStep)
    }

    private func outlet() throws(LoadError) -> Outlet {
        if let error = ending(.output) { throw error }
        let (output, transport) = state.withLock { ($0.output, $0.readyTransport) }
        switch output {
        case .failed(let error): throw error
        case .closed, .ended: throw failure(.streamClosed, .output)
        case .open: return transport.map { .ready($0) } ?? .step(.notReady)
        }
    }

    /// Runs an attempt to write. Its failure ends the output only: received bytes remain readable.
    private func move(_ attempt: () throws(IOFailure) -> Progress) throws(LoadError) -> Progress {
        do throws(IOFailure) { return try attempt() } catch {
            let error = failure(or: LoadError(error, .sending))
            change { $0.output = .failed(error) }
            throw error
        }
    }

    private func blocked(_ progress: Progress) throws(LoadError) -> StreamStep {
        if case .blocked(let interest) = progress { return .blocked(interest) }
        throw failure(.connectionLost, .output, .remote)
    }

    private func abandon() {
        let error = failure(.writeIncomplete, .output)
        change { if case .open = $0.output { $0.output = .failed(error) } }
    }
}

extension ContiguousBytes {
    fileprivate func attempt(
        from start: Int, _ write: (UnsafeRawBufferPointer) throws(IOFailure) -> Progress
    ) throws(IOFailure) -> Progress {
        try withUnsafeBytes { bytes in
            Result { () throws(IOFailure) in try write(UnsafeRawBufferPointer(rebasing: bytes[start...])) }
        }.get()
    }
}
