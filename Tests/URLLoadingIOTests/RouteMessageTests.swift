// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingTesting

@testable import URLLoadingIO

/// Parses rtnetlink messages, valid and invalid: the result is values or damage, never a trap.
@Suite(.timeLimit(.minutes(4)))
struct RouteMessageTests {
    private func messages(_ bytes: [UInt8]) -> [RouteMessage] {
        var reader = RouteMessageReader(bytes[...])
        var found: [RouteMessage] = []
        while let entry = reader.next() { found.append(entry.message) }
        return found
    }

    private static let six: [UInt8] = [0x20, 1] + [UInt8](repeating: 0, count: 13) + [7]

    @Test("Each kind of message is read, alone and after another")
    func kinds() {
        let eth = PathLink(index: 2, name: "eth0", hardware: 1, flags: 0x41)
        let four = PathAddress(index: 2, octets: [192, 0, 2, 2])
        let six = PathAddress(index: 2, octets: Self.six)
        let cases: [([UInt8], RouteMessage)] = [
            (RouteBytes.link(2, "eth0"), .link(eth)),
            (RouteBytes.link(2, "eth0", flags: 0xFFFF_FF41 & ~0x8), .link(eth)),
            (RouteBytes.link(2, "eth0", isGone: true), .linkRemoved(2)),
            (RouteBytes.link(2, "eth0", family: 7, isGone: true), .other),
            (RouteBytes.address(2, [192, 0, 2, 2]), .address(four)),
            (RouteBytes.address(2, Self.six), .address(six)),
            (RouteBytes.address(2, Self.six, isGone: true), .addressRemoved(six)),
            (RouteBytes.address(2, Self.six, flags: 0x40), .addressRemoved(six)),  // tentative
            (RouteBytes.address(2, Self.six, flags: 0x44), .address(six)),  // optimistic
            (RouteBytes.address(2, Self.six, flags: 0xC8), .addressRemoved(six)),  // a duplicate
            (RouteBytes.address(2, [127, 0, 0, 1], scope: 254), .other),
            (RouteBytes.address(2, Self.six, scope: 253), .other),
            (RouteBytes.address(2, [1, 2, 3]), .other),
            (RouteBytes.defaultRoute(through: [2]), .route(PathRoute(isIPv6: false, indices: [2], metric: 0))),
            (
                RouteBytes.defaultRoute(isIPv6: true, through: [2], metric: 1024),
                .route(PathRoute(isIPv6: true, indices: [2], metric: 1024))
            ),
            (
                RouteBytes.defaultRoute(through: [2, 3], metric: 5),
                .route(PathRoute(isIPv6: false, indices: [2, 3], metric: 5))
            ),
            (
                RouteBytes.defaultRoute(through: [2], isGone: true),
                .routeRemoved(PathRoute(isIPv6: false, indices: [2], metric: 0))
            ),
            (
                RouteBytes.defaultRoute(through: [9], but: .table(51820)),
                .route(PathRoute(isIPv6: false, indices: [9], metric: 0))
            ),
            (RouteBytes.defaultRoute(through: [1], but: .table(255)), .other),
            (RouteBytes.defaultRoute(through: [1], but: .type(7)), .other),  // unreachable
            (RouteBytes.defaultRoute(through: [2], but: .length(24)), .other),
            (RouteBytes.done, .done), (RouteBytes.failure(95), .failed(95)), (RouteBytes.failure(0), .other),
            (RouteBytes.failure(.min), .failed(.max)), (RouteBytes.message(4, []), .damaged),
            (RouteBytes.message(99, [1]), .other),
        ]
        for (bytes, expected) in cases {
            #expect(messages(bytes) == [expected])
            #expect(
                messages(RouteBytes.message(1, []) + bytes + RouteBytes.done) == [.other, expected]
                    + (expected == .damaged ? [] : [.done]))
        }
    }

    @Test("The header tells the sender of the query and whether the answer has several parts")
    func envelope() {
        let answer = RouteBytes.answering(RouteBytes.message(3, flags: 0x12, [0, 0, 0, 0]), 77, 4711)
        var reader = RouteMessageReader(answer[...])
        #expect(
            reader.next() == RouteMessageReader.Entry(message: .done, port: 4711, sequence: 77, isInterrupted: true))
        #expect(reader.next() == nil)
    }

    @Test("A truncated message yields its complete parts and is reported as damaged")
    func truncated() {
        let parts = [
            RouteBytes.link(2, "eth0"), RouteBytes.address(2, Self.six), RouteBytes.defaultRoute(through: [2, 3]),
        ]
        let whole = parts.flatMap { $0 }
        let ends = parts.indices.map { parts[...$0].reduce(0) { $0 + $1.count } }
        for cut in 0...whole.count {
            let found = messages(Array(whole[..<cut]))
            let isEnd = cut == 0 || ends.contains(cut)
            let complete = ends.filter { $0 <= cut }.count
            // The padding after the last attribute may be missing.
            #expect(found.filter { $0 != .damaged }.count - complete <= 1, "\(cut)")
            if isEnd { #expect(found.count == complete && !found.contains(.damaged), "\(cut)") }
        }
    }

    @Test("Wrong lengths are reported as damage")
    func lengths() {
        for length in [0, 1, 15, 17, 4096, UInt32.max, UInt32.max - 2, 1 << 31] as [UInt32] {
            let bytes = RouteBytes.number(length) + RouteBytes.link(2, "eth0").dropFirst(4)
            #expect(messages(bytes).contains(.damaged), "\(length)")
        }
        for length in [0, 1, 3, 255, UInt16.max] as [UInt16] {
            let head: [UInt8] = [0, 0] + RouteBytes.number(UInt16(1)) + [UInt8](repeating: 0, count: 12)
            let attribute = RouteBytes.number(length) + RouteBytes.number(UInt16(3)) + Array("eth0".utf8)
            #expect(messages(RouteBytes.message(16, head + attribute)) == [.damaged], "\(length)")
            let route: [UInt8] = [2, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0]
            let hop = RouteBytes.attribute(9, RouteBytes.number(length) + [0, 0] + RouteBytes.number(Int32(2)))
            #expect(messages(RouteBytes.message(24, route + hop)) == [.damaged], "\(length)")
        }
        #expect(messages(RouteBytes.message(2, [1])) == [.damaged])
        for type in [16, 17, 20, 21, 24, 25] as [UInt16] {
            #expect(messages(RouteBytes.message(type, [2])) == [.damaged])
        }
    }

    @Test("invalid messages end the parser without a trap")
    func garbage() {
        var random = SeededGenerator(seed: 1)
        let parts = [
            RouteBytes.link(2, "eth0"), RouteBytes.address(2, Self.six), RouteBytes.defaultRoute(through: [2, 3]),
            RouteBytes.failure(1),
        ]
        for round in 0..<20_000 {
            var bytes =
                round % 4 == 0
                ? (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
                : (parts.randomElement(using: &random) ?? []) + (parts.randomElement(using: &random) ?? [])
            for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
                let values: [UInt8] = [0, 1, 4, 0x7F, 0x80, 0xFF, .random(in: 0...255, using: &random)]
                let place = Int.random(in: 0..<bytes.count, using: &random)
                bytes[place] = values.randomElement(using: &random) ?? 0
            }
            // Each message takes at least the size of its header.
            #expect(messages(bytes).count <= bytes.count / 16 + 1)
        }
    }
}
