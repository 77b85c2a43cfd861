// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingWire

@testable import URLLoading

/// The content of a row, and compatibility between versions.
@Suite struct DiskHeadTests {
    private func read(_ bytes: [UInt8]) -> StoredResponse? { bytes.withUnsafeBytes { DiskHead($0) }?.response }

    /// With its own checksum.
    private func summed(_ content: [UInt8]) -> [UInt8] {
        var writer = ByteWriter()
        writer.put(content.withUnsafeBytes { BlockSums.sum($0) })
        return content + writer.bytes
    }

    @Test("the addresses a response came from are read as they were written", arguments: 0...3)
    func addresses(_ count: Int) {
        let all: [SocketAddress] = [
            .ipv4((192, 0, 2, 1), port: 80), .ipv6([0x20, 1] + [UInt8](repeating: 7, count: 14), port: 443),
            .ipv4((192, 0, 2, 1), port: 81),
        ]
        var stored = StoredResponse.of("a", headers: ["X": "y"])
        stored.source = AnswerSource(Array(all.prefix(count)))
        let found = read(DiskHead(stored, file: nil, sums: []).bytes)
        #expect(found?.source == stored.source && found?.source.addresses.count == count)
        #expect(found?.headers == stored.headers)
    }

    @Test("a head of an earlier or a later version is not read")
    func formats() {
        var content = Array(DiskHead(.of("a", headers: ["X": "y"]), file: nil, sums: []).bytes.dropLast(4))
        for (format, isRead) in [(1, false), (2, false), (3, true), (4, false)] as [(UInt8, Bool)] {
            content[0] = format
            #expect((read(summed(content)) != nil) == isRead, "\(format)")
        }
    }

    @Test("the place of a body is read as it was written; an impossible one is not read")
    func places() {
        func found(_ file: String?, _ offset: Int64, _ sums: [UInt32], length: Int64) -> PackPlace?? {
            var stored = StoredResponse.of("a")
            stored.extent = .whole(length)
            let bytes = DiskHead(stored, file: file, offset: offset, sums: sums).bytes
            return bytes.withUnsafeBytes { DiskHead($0) }.map(\.place)
        }
        #expect(found("99a", 70, [5], length: 9) == PackPlace(pack: "99a", offset: 70, count: 9, sum: 5))
        #expect(found(nil, 0, [], length: 0) == PackPlace(pack: "", offset: 0, count: 0, sum: 0))
        #expect(found("aab", 0, [5, 6], length: 70_000) == .some(nil))
        for (file, offset, sums, length) in [
            ("99a", -1, [5], 9), ("99a", 0, [5, 6], 70_000), (nil, 0, [5], 9), ("aab", 0, [], 0), ("../x", 0, [5], 9),
        ] as [(String?, Int64, [UInt32], Int64)] {
            #expect(found(file, offset, sums, length: length) == nil, "\(file ?? "") \(offset) \(sums)")
        }
    }

    @Test("a response made of two answers has the sources of both, up to a number of addresses")
    func united() {
        let addresses = (0..<12).map { SocketAddress.ipv4((192, 0, 2, UInt8($0)), port: 80) }
        var source = AnswerSource.one(addresses[0])
        for (index, address) in addresses.enumerated() {
            source = source.united(with: .one(address))
            let isKnown = index < AnswerSource.most
            #expect(source.addresses.count == (isKnown ? index + 1 : 0))
        }
        #expect(AnswerSource.one(addresses[0]).united(with: .unknown) == .unknown)
        let host = Origin.Host(address: [192, 0, 2, 0])
        let policy = AddressPolicy { $0.text != "192.0.2.1" }
        let allowed = host.map { host in
            [AnswerSource.one(addresses[0]), .several([addresses[0], addresses[1]]), .unknown].map {
                $0.isAllowed(by: policy, to: host)
            }
        }
        #expect(allowed == [true, false, false])
    }
}
