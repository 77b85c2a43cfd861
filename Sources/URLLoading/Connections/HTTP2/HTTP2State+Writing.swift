// SPDX-License-Identifier: Apache-2.0

// The writer of a shared connection's socket, and the bytes that are still to be written.

import URLLoadingIO
import URLLoadingWire

extension HTTP2State {
    struct Writing {
        enum Phase: Equatable {
            case idle
            case busy
            /// The socket is not writable for now.
            case blocked(PollSlot.Interest)
            /// A write has failed, so nothing more is written. Bytes that the peer sent before may still be read.
            case muted
        }
        var phase = Phase.idle
        /// There may be frames that no write has included.
        var hasUnwritten = true

        /// Frames wait, and no task is writing.
        var awaitsWriter: Bool { hasUnwritten && phase == .idle }

        func isBlocked(on interest: PollSlot.Interest) -> Bool { phase == .blocked(interest) }
    }

    /// Returns whether the caller writes. It also writes the frames that are added meanwhile.
    /// - Parameter closes: the caller is about to close the transport.
    mutating func beginWriting(closes: Bool = false) -> Bool {
        guard closes || closing != .done else { return false }
        switch writing.phase {
        case .busy, .muted: return false
        case .idle, .blocked:
            writing.phase = .busy
            return true
        }
    }

    /// Moves frames into the writer's empty buffer.
    mutating func takeOutput(into output: inout [UInt8], upTo size: Int, now: @autoclosure () -> Int64) -> [PollSlot] {
        writing.hasUnwritten = false
        windows.sendsSettings(now: now())
        codec.takeOutput(into: &output, upTo: size)
        return deliver(from: nil)
    }

    mutating func endWriting() { writing.phase = .idle }
    mutating func disableWriting() { writing.phase = .muted }

    /// Returns the slot of a reader that waits for input only, and must now also wait for the socket to become
    /// writable.
    mutating func blockWriting(on interest: PollSlot.Interest) -> PollSlot? {
        writing.phase = .blocked(interest)
        return reading.waitingSocket
    }

    /// Whether the caller must write new frames itself; otherwise the reader does, before it waits.
    var mustFlush: Bool { reading.isFree || reading.waitingSocket != nil }
}
