// SPDX-License-Identifier: Apache-2.0

// The memory of one nghttp2 session. nghttp2 takes a block for each stream and for each name and value that it
// receives: 17 for a response with eight fields, and with many streams at once more than the system's allocator keeps
// at hand. Small blocks that nghttp2 frees are kept here for the next response.

import URLLoadingCNghttp2

final class HTTP2Memory {
    private let blocks: UnsafeMutablePointer<HTTP2FreeBlocks>

    init() {
        blocks = .allocate(capacity: 1)
        blocks.initialize(to: HTTP2FreeBlocks())
    }

    /// The session must have been deleted before.
    deinit {
        blocks.pointee.removeAll()
        blocks.deinitialize(count: 1)
        blocks.deallocate()
    }

    /// The functions for `nghttp2_session_client_new3`, which copies them. They call no other code.
    var functions: nghttp2_mem {
        func blocks(_ context: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<HTTP2FreeBlocks>? {
            context?.assumingMemoryBound(to: HTTP2FreeBlocks.self)
        }
        return nghttp2_mem(
            mem_user_data: self.blocks,
            malloc: { size, context in blocks(context)?.pointee.allocate(size) },
            free: { block, context in blocks(context)?.pointee.free(block) },
            calloc: { count, size, context in
                let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: size)
                guard !isTooLarge, let block = blocks(context)?.pointee.allocate(bytes) else { return nil }
                block.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
                return block
            },
            realloc: { block, size, context in blocks(context)?.pointee.reallocate(block, size) })
    }
}

/// Blocks whose capacity precedes them, and lists of those that are free.
struct HTTP2FreeBlocks {
    /// The first free block of each capacity; a free block begins with the address of the next one.
    private var first = InlineArray<5, UnsafeMutableRawPointer?>(repeating: nil)
    /// The bytes of the free blocks.
    private(set) var kept = 0

    /// The limit of `kept`, in bytes: the blocks of some 100 responses.
    static let maximumKept = 64 << 10
    /// The bytes in front of a block, which keep its alignment.
    private static let header = 16
    private static let smallest = 64
    /// The largest capacity of a block that is kept, in bytes.
    static let largest = smallest << 4 - header

    /// The list of the smallest blocks with at least this capacity, which is at most `largest`.
    private static func list(_ capacity: Int) -> Int {
        let whole = max(capacity + header, smallest)
        return Int.bitWidth - (whole - 1).leadingZeroBitCount - smallest.trailingZeroBitCount
    }

    private static func capacity(_ block: UnsafeMutableRawPointer) -> Int { (block - header).load(as: Int.self) }

    /// - Returns: `nil` for a size that no allocator has.
    mutating func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
        guard size >= 0, size < Int.max / 2 else { return nil }
        guard size <= Self.largest else { return Self.make(size) }
        let list = Self.list(size)
        guard let block = first[list] else { return Self.make(Self.smallest << list - Self.header) }
        first[list] = block.load(as: UnsafeMutableRawPointer?.self)
        kept -= Self.smallest << list
        return block
    }

    mutating func free(_ block: UnsafeMutableRawPointer?) {
        guard let block else { return }
        let capacity = Self.capacity(block)
        guard capacity <= Self.largest, kept + capacity + Self.header <= Self.maximumKept else {
            return (block - Self.header).deallocate()
        }
        let list = Self.list(capacity)
        block.storeBytes(of: first[list], as: UnsafeMutableRawPointer?.self)
        first[list] = block
        kept += Self.smallest << list
    }

    mutating func reallocate(_ block: UnsafeMutableRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
        guard let block else { return allocate(size) }
        let capacity = Self.capacity(block)
        if size >= 0, size <= capacity { return block }
        guard let larger = allocate(size) else { return nil }
        larger.copyMemory(from: block, byteCount: capacity)
        free(block)
        return larger
    }

    mutating func removeAll() {
        for list in first.indices {
            while let block = first[list] {
                first[list] = block.load(as: UnsafeMutableRawPointer?.self)
                (block - Self.header).deallocate()
            }
        }
        kept = 0
    }

    private static func make(_ capacity: Int) -> UnsafeMutableRawPointer {
        let whole = UnsafeMutableRawPointer.allocate(byteCount: header + capacity, alignment: header)
        whole.storeBytes(of: capacity, as: Int.self)
        return whole + header
    }
}
