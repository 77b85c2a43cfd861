// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCSystem

/// The memory for received datagrams of one socket: four groups of at most 64 KiB, of which the system provides the
/// pages once they are written. Used by one task at a time.
package final class DatagramBuffer {
    /// The largest group that the kernel joins.
    private static let room = 1 << 16
    private let bytes: UnsafeMutableRawBufferPointer
    private var groups = [csys_datagrams](repeating: csys_datagrams(), count: Int(CSYS_MOST_RECEIVED))
    private var groupCount = 0

    package init() {
        bytes = .allocate(byteCount: Self.room * Int(CSYS_MOST_RECEIVED), alignment: 16)
    }

    deinit { bytes.deallocate() }

    /// Returns the result of `receive`, which is passed the memory, the room of one group, and the groups to describe.
    func fill(
        _ receive: (UnsafeMutableRawPointer?, Int, UnsafeMutablePointer<csys_datagrams>?, Int32) -> Int32
    ) -> Int32 {
        let count = groups.withUnsafeMutableBufferPointer {
            receive(bytes.baseAddress, Self.room, $0.baseAddress, Int32($0.count))
        }
        groupCount = max(0, Int(count))
        return count
    }

    /// Lends each datagram with its mark of congestion, in the order of their arrival. One that was cut off is left
    /// out.
    package func forEach<Failure: Error>(
        _ body: (UnsafeRawBufferPointer, _ ecn: UInt8) throws(Failure) -> Void
    ) throws(Failure) {
        for (index, group) in groups.prefix(groupCount).enumerated() {
            let start = index * Self.room
            let end = start + min(Int(group.count), Self.room)
            let size = max(1, Int(group.size))
            var next = start
            while next < end {
                let last = min(next + size, end)
                if !(group.is_truncated && last == end) {
                    try body(UnsafeRawBufferPointer(rebasing: bytes[next..<last]), group.ecn)
                }
                next = last
            }
        }
    }
}

#endif
