// SPDX-License-Identifier: Apache-2.0

// The connection between programs and the background agent, as either side uses it.

import Synchronization
package import URLLoadingIO
package import URLLoadingWire

/// A connection between a program and the background agent, which carries frames.
///
/// One task receives; any number send. Closed by ``close()``, by the other side, and by the first protocol violation.
package final class AgentChannel: Sendable {
    package struct Incoming: Sendable {
        package let message: AgentMessage
        package let id: UInt32
        package let files: [PassedFile]
    }
    private struct Outgoing: Sendable {
        let bytes: [UInt8]
        let files: [PassedFile]
    }
    private struct State: Sendable {
        var decoder = AgentFrameDecoder()
        var files: [PassedFile] = []
        var queued = 0
        var isOver = false
    }

    private let socket: LocalSocket
    private let token = StopToken()
    private let state = Lock(State())
    private let queue: AsyncStream<Outgoing>.Continuation

    /// The maximum number of queued bytes for a peer that does not read; beyond it the connection is closed.
    private static let maximumQueued = 16 << 20
    private static let readSize = 64 * 1024

    package init(_ socket: LocalSocket) {
        self.socket = socket
        let (stream, queue) = AsyncStream.makeStream(of: Outgoing.self)
        self.queue = queue
        Task { [socket, token, weak self] in
            for await outgoing in stream {
                do throws(IOFailure) { try await socket.send(outgoing.bytes, files: outgoing.files, token) } catch {
                    break
                }
                self?.state.withLock { $0.queued -= outgoing.bytes.count }
            }
            token.stop(.cancelled)
            socket.shutDown()
        }
    }

    deinit { queue.finish() }

    /// Returns the identity of the peer process.
    package func peer() throws(IOFailure) -> LocalPeer { try socket.peer() }

    /// Closes the connection at once: a task that receives gets `nil`, and queued messages are not sent.
    package func close() {
        state.withLock { $0.isOver = true }
        queue.finish()
        token.stop(.cancelled)
        socket.shutDown()
    }

    /// Closes the connection once the queued messages have been sent.
    package func finish() { queue.finish() }

    /// Whether the peer reads so slowly that messages of passing interest need not be sent.
    package var isBusy: Bool { state.withLock { $0.queued > Self.readSize } }

    package enum Sent: Sendable {
        case queued
        /// The message does not fit a frame; the connection goes on.
        case tooLarge
        /// The connection is over.
        case over
    }

    /// Queues a message. Never waits.
    @discardableResult
    package func send(_ message: AgentMessage, id: UInt32 = 0, files: [PassedFile] = []) -> Sent {
        guard let bytes = try? message.frame(id: id, descriptorCount: files.count).encoded() else { return .tooLarge }
        let takes = state.withLock { state in
            guard !state.isOver else { return false }
            state.queued += bytes.count
            return state.queued <= Self.maximumQueued
        }
        guard takes else {
            close()
            return .over
        }
        if case .enqueued = queue.yield(Outgoing(bytes: bytes, files: files)) { return .queued }
        return .over
    }

    /// Returns the next message; `nil` at the end of the connection.
    /// - Throws: ``WireViolation`` of the peer: the connection is then closed.
    package func receive() async throws(WireViolation) -> Incoming? {
        while true {
            do throws(WireViolation) {
                if let incoming = try next() { return incoming }
            } catch {
                close()
                throw error
            }
            guard let piece = try? await socket.receive(atMost: Self.readSize, token), !piece.bytes.isEmpty else {
                close()
                return nil
            }
            state.withLock { state in
                state.decoder.receive(piece.bytes)
                state.files += piece.files
            }
        }
    }

    private func next() throws(WireViolation) -> Incoming? {
        try state.withLock { (state) throws(WireViolation) in
            guard let frame = try state.decoder.next() else {
                // Descriptors arrive with the first byte of their frame: more than the maximum belong to no frame.
                guard state.files.count <= AgentFrame.maximumDescriptors else {
                    throw WireViolation(.remote, .wrongDescriptorCount)
                }
                return nil
            }
            guard frame.descriptorCount <= state.files.count else {
                throw WireViolation(.remote, .wrongDescriptorCount)
            }
            let files = Array(state.files.prefix(frame.descriptorCount))
            state.files.removeFirst(frame.descriptorCount)
            return Incoming(message: try AgentMessage(frame), id: frame.id, files: files)
        }
    }
}
