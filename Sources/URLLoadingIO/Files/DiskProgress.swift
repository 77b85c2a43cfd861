// SPDX-License-Identifier: Apache-2.0

// Tracks how much of a growing file is known to be on the disk. Data in the system's buffers survives the death of the
// process but not a loss of power: afterwards the file may have its full size, with zeros in place of content.

import Synchronization
import URLLoadingCSystem

/// A prefix of a file that is known to be on the disk, with a digest that verifies its content later.
package struct DiskMark: Sendable, Equatable {
    /// Bytes from the start of the file.
    package let offset: Int64
    /// SHA-256 of the last bytes before `offset`, at most 64 KiB, in hexadecimal.
    package let tail: String

    package init(offset: Int64, tail: String) {
        self.offset = offset
        self.tail = tail
    }
}

/// Decides when a growing file is synchronised: after 64 MiB, or with the first bytes that arrive 5 seconds or more
/// after the last synchronisation. Pure; times are monotonic nanoseconds.
struct SyncPlan: Sendable {
    static let bytes: Int64 = 64 << 20
    static let interval: Int64 = 5_000_000_000

    private enum Phase: Sendable {
        case idle
        case synchronizing
        /// A write to the disk has failed. The system reports that only once, so later successes prove nothing
        /// (fsync(2)).
        case failed
    }
    private var phase = Phase.idle
    /// File offset and time at which the last synchronisation began; `time` is `nil` before the first bytes.
    private var offset: Int64 = 0
    private var time: Int64?

    /// Records that content is written up to `end`. Returns whether a synchronisation must begin now.
    mutating func wrote(upTo end: Int64, now: Int64) -> Bool {
        let since = time ?? now
        time = since
        guard phase == .idle, end > offset, end - offset >= Self.bytes || now - since >= Self.interval else {
            return false
        }
        (phase, offset, time) = (.synchronizing, end, now)
        return true
    }

    mutating func synchronized(isDone: Bool) { phase = isDone ? .idle : .failed }

    /// Records that the content before `offset` is on the disk already.
    mutating func skip(to offset: Int64) { self.offset = offset }

    /// Records that the content from `offset` on was discarded.
    mutating func cut(to offset: Int64) { self.offset = min(self.offset, offset) }
}

/// An open file, closed with its last reference, because a synchronisation may outlast the file's writer.
final class OpenFile: Sendable {
    let descriptor: Int32
    init(_ descriptor: Int32) { self.descriptor = descriptor }
    deinit { _ = csys_close(descriptor) }

    /// Returns the SHA-256 of the last bytes before `offset`, at most 64 KiB. Blocks.
    func tail(before offset: Int64) throws(IOFailure) -> String {
        let count = min(offset, 64 * 1024)
        return Digest.hex(try bytes(Int(count), from: offset - count))
    }

    /// Reads exactly `count` bytes. Blocks.
    func bytes(_ count: Int, from offset: Int64) throws(IOFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes.withUnsafeMutableBytes { buffer in
                csys_file_read(descriptor, buffer.baseAddress?.advanced(by: done), count - done, offset + Int64(done))
            }
            guard got > 0 else { throw IOFailure(.system(got == 0 ? EIO : Int32(-got)), .read) }
            done += got
        }
        return bytes
    }
}

/// Synchronises one growing file on a thread that all files share, and tracks how far its content is on the disk. The
/// file must grow from its beginning; one that is written in several ranges has `FileRanges`.
final class DiskProgress: Sendable {
    private struct State: Sendable {
        var plan = SyncPlan()
        var mark: DiskMark?
        /// Counts how often content was discarded: a synchronisation that began before a discard proves nothing about
        /// later content.
        var truncations = 0
        var hasName = false
    }
    private let state = Lock(State())
    private let file: OpenFile
    private let folder: String

    init(_ file: OpenFile, in folder: String) {
        self.file = file
        self.folder = folder
    }

    /// The prefix that is on the disk; `nil` until the first synchronisation has ended.
    var mark: DiskMark? { state.withLock { $0.mark } }

    /// Continues from the mark that an earlier writer of the file has left.
    func resume(from mark: DiskMark) {
        state.withLock { state in
            state.mark = mark
            state.plan.skip(to: mark.offset)
        }
    }

    /// Records that the content from `offset` on was discarded.
    func cut(to offset: Int64) {
        state.withLock { state in
            state.truncations += 1
            if let mark = state.mark, mark.offset > offset { state.mark = nil }
            state.plan.cut(to: offset)
        }
    }

    /// Records that content is written up to `offset`. Never blocks.
    func wrote(upTo offset: Int64, now: Int64) {
        let truncations = state.withLock { $0.plan.wrote(upTo: offset, now: now) ? $0.truncations : nil }
        guard let truncations else { return }
        BlockingThreads.synchronizing.run { [self] in synchronize(upTo: offset, truncations) }
    }

    private func synchronize(upTo offset: Int64, _ truncations: Int) {
        let tail = try? file.tail(before: offset)
        let isDone = csys_file_sync_content(file.descriptor) >= 0
        // The name of a new file is part of the folder's content. Where a folder cannot be synchronised the file may be
        // missing after a loss of power, but its content is never wrong.
        if isDone, !state.withLock({ $0.hasName }) { _ = csys_directory_sync(folder) }
        state.withLock { state in
            state.plan.synchronized(isDone: isDone)
            guard isDone else { return }
            state.hasName = true
            if let tail, truncations == state.truncations { state.mark = DiskMark(offset: offset, tail: tail) }
        }
    }
}

/// Identifies the running system until its next boot.
package enum SystemBoot {
    /// The kernel's boot identifier; empty if the system does not provide one.
    package static let identity: String = {
        var text = [CChar](repeating: 0, count: 37)
        guard csys_boot_identity(&text) else { return "" }
        // C's char is signed on x86-64 and unsigned on aarch64.
        return String(decoding: text.prefix(36).map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }()
}
