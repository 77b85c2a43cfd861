// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingCSystem
import URLLoadingIO

@Suite struct ChecksumTests {
    private func sum(_ seed: UInt32, _ bytes: some Collection<UInt8>, plainly: Bool = false) -> UInt32 {
        Array(bytes).withUnsafeBytes { csys_crc32c(seed, $0.baseAddress, $0.count, plainly) }
    }

    @Test("CRC-32C is that of RFC 3720, appendix B.4, with the processor's instruction and without it")
    func vectors() {
        for (bytes, expected) in [
            ([UInt8](repeating: 0, count: 32), 0x8A91_36AA), ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
            (Array(0..<32), 0x46DD_794E), (Array((0..<32).reversed()), 0x113F_DB5C), ([], 0),
        ] as [([UInt8], UInt32)] {
            #expect(sum(0, bytes) == expected && sum(0, bytes, plainly: true) == expected)
        }
    }

    @Test("a checksum is the same in pieces of any length")
    func pieces() {
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 3) }
        for cut in [0, 1, 7, 8, 9, 63, 500, 999, 1_000] {
            for plainly in [false, true] {
                #expect(sum(sum(0, bytes[..<cut]), bytes[cut...], plainly: plainly) == sum(0, bytes))
            }
        }
        var sums = BlockSums()
        for byte in bytes { withUnsafeBytes(of: byte) { sums.add($0) } }
        #expect(sums.finish() == [sum(0, bytes)])
    }

    /// The check values of the catalogue of parametrised CRC algorithms: each of the bytes of "123456789".
    @Test(
        "the checksums of object stores are those of their specifications, in pieces of any length",
        arguments: [
            (.crc32, [0xCB, 0xF4, 0x39, 0x26]), (.crc32c, [0xE3, 0x06, 0x92, 0x83]),
            (.crc64NVME, [0xAE, 0x8B, 0x14, 0x86, 0x0A, 0x79, 0x98, 0x88]),
        ] as [(RunningCRC.Kind, [UInt8])])
    func objectStores(_ kind: RunningCRC.Kind, _ expected: [UInt8]) {
        func sum(_ pieces: [ArraySlice<UInt8>]) -> [UInt8] {
            var sum = RunningCRC(kind)
            for piece in pieces { piece.withUnsafeBytes { sum.update($0) } }
            return sum.bytes
        }
        let digits = Array("123456789".utf8)
        #expect(sum([digits[...]]) == expected && sum([]) == Array(repeating: 0, count: kind.size))
        let bytes = (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 3) }
        for cut in [0, 1, 7, 8, 9, 63, 500, 999, 1_000] {
            #expect(sum([bytes[..<cut], bytes[cut...]]) == sum([bytes[...]]))
        }
    }
}
