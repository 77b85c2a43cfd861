// SPDX-License-Identifier: Apache-2.0

#if HTTP3

import URLLoadingCSystem

/// The memory for received datagrams of one socket, in groups: those that the kernel has joined. The system provides
/// its pages once they are written. Used by one task at a time.
package final class DatagramBuffer {
    private let bytes: UnsafeMutableRawBufferPointer
    private let room: Int
    private var groups = [csys_datagrams](repeating: csys_datagrams(), count: Int(CSYS_MOST_RECEIVED))
    private var groupCount = 0

    /// - Parameter room: the size of a group in bytes; the kernel joins no more than 64 KiB, and cuts off what does not
    ///   fit.
    package init(room: Int = 1 << 16) {
        self.room = room
        bytes = .allocate(byteCount: room * Int(CSYS_MOST_RECEIVED), alignment: 16)
    }

    /// The number of bytes that were received.
    package var count: Int { groups.prefix(groupCount).reduce(0) { $0 + Int($1.count) } }
    /// The number of groups that are received at once.
    package var mostGroups: Int { groups.count }

    deinit { bytes.deallocate() }

    /// Returns the result of `receive`, which is passed the memory, the room of one group, and the groups to describe.
    func fill(
        _ receive: (UnsafeMutableRawPointer?, Int, UnsafeMutablePointer<csys_datagrams>?, Int32) -> Int32
    ) -> Int32 {
        let count = groups.withUnsafeMutableBufferPointer {
            receive(bytes.baseAddress, room, $0.baseAddress, Int32($0.count))
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
            let start = index * room
            let end = start + min(Int(group.count), room)
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
