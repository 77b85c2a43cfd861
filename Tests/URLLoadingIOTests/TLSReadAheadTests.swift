// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTesting

@testable import URLLoadingIO

struct TLSReadAheadTests {
    private static let content = (0..<2000).map { UInt8(truncatingIfNeeded: $0) }

    /// Takes up to `count` bytes.
    private static func take(_ count: Int, from ahead: inout TLSReadAhead) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { $1 = ahead.take(into: UnsafeMutableRawBufferPointer($0)) }
    }

    @Test("Bytes are taken in order, whatever the sizes of reads and of requests", arguments: [1, 5, 999, 2000])
    func order(_ piece: Int) throws {
        for request in [1, 4, 5, 6, 1000, 3000] {
            let pieces = stride(from: 0, to: 2000, by: piece).map { Array(Self.content[$0..<min(2000, $0 + piece)]) }
            let transport = ScriptedTransport(pieces.map { .give($0) } + [.end])
            var ahead = TLSReadAhead()
            var taken: [UInt8] = []
            while try ahead.isEmpty ? ahead.fill(from: transport) != .end : true {
                let next = Self.take(request, from: &ahead)
                #expect(!next.isEmpty && next.count <= request)
                taken += next
            }
            #expect(taken == Self.content)
            transport.close()
        }
    }

    @Test("A wait, an end and an error leave nothing behind, and the next read continues")
    func waits() throws {
        let transport = ScriptedTransport([.block, .give([1, 2, 3]), .fail(.closedByPeer)], holdingAt: nil)
        defer { transport.close() }
        var ahead = TLSReadAhead()
        #expect(try ahead.fill(from: transport) == .blocked(.read))
        #expect(ahead.isEmpty)
        #expect(Self.take(5, from: &ahead).isEmpty)
        #expect(try ahead.fill(from: transport) == .moved(3))
        ahead.releaseIfEmpty()
        #expect(Self.take(5, from: &ahead) == [1, 2, 3])
        #expect(throws: IOFailure.self) { try ahead.fill(from: transport) }
        #expect(ahead.isEmpty)
    }

    @Test("A large buffer serves only readers that expect much")
    func sizes() {
        for isLarge in [true, false] {
            let buffers = (0..<20).map { _ in TLSReadBuffer.take(large: isLarge) }
            #expect(buffers.allSatisfy { $0.bytes.count == (isLarge ? 128 : 16) * 1024 })
            buffers.forEach { $0.giveBack() }
            let again = TLSReadBuffer.take(large: isLarge)
            #expect(again.bytes.count == (isLarge ? 128 : 16) * 1024)
            again.giveBack()
        }
    }
}
