// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingCNghttp2

@testable import URLLoadingWire

/// The blocks that a session of nghttp2 takes and frees.
@Suite struct HTTP2MemoryTests {
    @Test("blocks have room for what was asked, whatever the size, and keep their bytes when they grow")
    func sizes() throws {
        var blocks = HTTP2FreeBlocks()
        defer { blocks.removeAll() }
        for size in [0, 1, 47, 48, 49, 112, 113, 1007, 1008, 1009, 1 << 20] {
            let taken = blocks.allocate(size)
            let block = try #require(taken)
            #expect(Int(bitPattern: block) % 16 == 0)
            block.initializeMemory(as: UInt8.self, repeating: 7, count: size)
            let moved = blocks.reallocate(block, 2 * size + 100)
            let larger = try #require(moved)
            larger.initializeMemory(as: UInt8.self, at: size, 9, count: size + 100)
            let bytes = UnsafeRawBufferPointer(start: larger, count: 2 * size + 100)
            #expect(bytes.prefix(size).allSatisfy { $0 == 7 } && bytes.dropFirst(size).allSatisfy { $0 == 9 })
            let same = blocks.reallocate(larger, 1)
            #expect(same == larger)
            blocks.free(larger)
        }
    }

    @Test("a freed block is the next one of its size; large ones go back to the system")
    func reuse() {
        var blocks = HTTP2FreeBlocks()
        defer { blocks.removeAll() }
        let (one, other) = (blocks.allocate(20), blocks.allocate(40))
        let large = blocks.allocate(HTTP2FreeBlocks.largest + 1)
        blocks.free(one)
        blocks.free(other)
        blocks.free(large)
        blocks.free(nil)
        #expect(blocks.kept == 128)
        let others = [blocks.allocate(200), blocks.allocate(48), blocks.allocate(1)]
        #expect(others[0] != one && others[0] != other)
        #expect(others[1] == other && others[2] == one)
        #expect(blocks.kept == 0)
        for block in others { blocks.free(block) }
    }

    @Test("free blocks have a limit")
    func limit() {
        var blocks = HTTP2FreeBlocks()
        defer { blocks.removeAll() }
        let taken = (0..<2_000).map { blocks.allocate($0 % 1_500) }
        for block in taken { blocks.free(block) }
        #expect(blocks.kept <= HTTP2FreeBlocks.maximumKept)
        #expect(blocks.kept > HTTP2FreeBlocks.maximumKept - 2048)
        blocks.removeAll()
        #expect(blocks.kept == 0)
    }

    @Test("sizes that no memory has are refused, and zeroed memory is zero also if it was used before")
    func functions() throws {
        let memory = HTTP2Memory()
        let functions = memory.functions
        let context = functions.mem_user_data
        #expect(functions.malloc(-1, context) == nil)
        #expect(functions.calloc(Int.max, 2, context) == nil)
        #expect(functions.realloc(nil, Int.max, context) == nil)
        let used = try #require(functions.malloc(40, context))
        used.initializeMemory(as: UInt8.self, repeating: 7, count: 40)
        #expect(functions.realloc(used, Int.max, context) == nil)
        functions.free(used, context)
        let zeroed = try #require(functions.calloc(5, 8, context))
        #expect(zeroed == used)
        #expect(UnsafeRawBufferPointer(start: zeroed, count: 40).allSatisfy { $0 == 0 })
        functions.free(zeroed, context)
        withExtendedLifetime(memory) {}
    }
}

extension UnsafeMutableRawPointer {
    fileprivate func initializeMemory(as type: UInt8.Type, at offset: Int, _ byte: UInt8, count: Int) {
        (self + offset).initializeMemory(as: type, repeating: byte, count: count)
    }
}
