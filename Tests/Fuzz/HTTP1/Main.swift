// SPDX-License-Identifier: Apache-2.0

#if URLLOADING_FUZZ
// The package manager gives every executable a main of its own name, which keeps the fuzzer's from
// being linked: so this one hands over to the fuzzer's driver.

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ test: @convention(c) (UnsafePointer<UInt8>, Int) -> CInt
) -> CInt

@_cdecl("FuzzHTTP1_main")
public func fuzzMain(
    _ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> CInt {
    var count = count
    var arguments = arguments
    return runDriver(&count, &arguments) { fuzzOneInput($0, $1) }
}
#else
import Glibc

/// Without the fuzzer: mutated samples for each target in turn, reproducible by the seed.
///
///     FuzzHTTP1 SECONDS FILE [SEED [TARGET NUMBER]]
///
/// Writes the target and the number of the current input to FILE, where they stay after a crash. With both given, runs
/// this input alone.
@main
enum FuzzSmoke {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst().map { $0 }
        guard arguments.count >= 2, let seconds = Double(arguments[0]) else {
            print("usage: FuzzHTTP1 SECONDS FILE [SEED [TARGET NUMBER]]")
            exit(64)
        }
        let seed = arguments.count > 2 ? UInt64(arguments[2]) ?? 0 : UInt64.random(in: 0..<1_000_000)
        print("seed \(seed)")
        if arguments.count > 4, let target = FuzzTarget.all.first(where: { $0.name == arguments[3] }) {
            return target.run(SmokeInput(seed, UInt64(arguments[4]) ?? 0, target).bytes)
        }
        let file = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        for target in FuzzTarget.all {
            let end = ContinuousClock.now + .seconds(seconds / Double(FuzzTarget.all.count))
            var number: UInt64 = 0
            while ContinuousClock.now < end {
                // Of one length, so that each replaces the one before.
                let text = Array("\(seed) \(target.name) \(String(number))".utf8)
                let line = text + [UInt8](repeating: 32, count: max(0, 63 - text.count)) + [10]
                pwrite(file, line, line.count, 0)
                target.run(SmokeInput(seed, number, target).bytes)
                number += 1
            }
            print("\(target.name): \(number) inputs")
        }
    }
}

/// One of the targets that the first byte chooses, with samples of its input.
private struct FuzzTarget {
    let name: String
    let selector: UInt8
    let samples: [[UInt8]]

    init(_ name: String, _ selector: UInt8, _ samples: String...) {
        (self.name, self.selector, self.samples) = (name, selector, samples.map { Array($0.utf8) })
    }

    init(_ name: String, _ selector: UInt8, _ samples: [[UInt8]]) {
        (self.name, self.selector, self.samples) = (name, selector, samples)
    }

    func run(_ bytes: [UInt8]) { bytes.withUnsafeBufferPointer { _ = fuzzOneInput($0.baseAddress!, $0.count) } }

    static let all = [
        FuzzTarget(
            "responses", 0, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.0 204 No Content\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nrest",
            // What a tolerant client reads.
            "HTTP/1.1 200 OK\nContent-Length : 5\nA: b\n c\n\nhello",
            "HTTP/1.1 200\r\nContent-Length: 5, 5\r\nno colon\r\n\r\nhello"),
        FuzzTarget(
            "requests", 3, "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
            "PUT * HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"),
        FuzzTarget(
            "codings", 5,
            [
                [
                    0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 7, 0, 0x86, 0xA6, 0x10, 0x36, 5,
                    0, 0, 0,
                ],
                [0x78, 0x9C, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 7, 0, 6, 0x2C, 2, 0x15],
                [0x0B, 2, 0x80, 0x68, 0x65, 0x6C, 0x6C, 0x6F, 3],
                [0x28, 0xB5, 0x2F, 0xFD, 0x20, 5, 0x29, 0, 0, 0x68, 0x65, 0x6C, 0x6C, 0x6F],
            ]),
        FuzzTarget(
            "references", 6, "http://a.example:80/b/../c?d=e#f", "//[fe80::1%25eth0]/%41", "bücher.example/ä",
            "https://u:p@127.0.0.1/;x=1", "../../g?y/./x"),
        FuzzTarget(
            "values", 7, "text/html; charset=\"utf-8\"", "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "GET\u{FF}/a\u{FF}Name\u{FF}value\u{FF}Other\u{FF}1"),
        FuzzTarget(
            "bodies", 8, "--b\r\nContent-Type: text/plain\r\n\r\nhello\r\n--b\r\n\r\nx\r\n--b--\r\n",
            "event: a\ndata: b\nid: 1\nretry: 100\n\n: c\n", "attachment; filename*=UTF-8''a%20b.txt", "bytes 0-4/5",
            "W/\"a\"", "\u{05}\u{00}\u{05}\u{00}\u{00}\u{01}abcd\u{00}P"),
        FuzzTarget(
            "cookies", 10, "a=b; Path=/c; Domain=h.example; Max-Age=100; Secure; HttpOnly; SameSite=Lax",
            "a=; Expires=Wed, 09 Jun 2121 10:18:14 GMT", "max-age=31536000; includeSubDomains",
            ".h.example\tTRUE\t/\tFALSE\t1900000000\ta\tb"),
        FuzzTarget(
            "ftp", 12,
            "220-hello\r\n220 there\r\n331 password\r\n230 in\r\n200 I\r\n229 (|||4711|)\r\n150 x\r\n226 done\r\n",
            "220 a\r\n230 b\r\n227 Entering (127,0,0,1,18,103)\r\n213 1500000\r\n550 no\r\n", "a/b;type=i"),
        FuzzTarget(
            "websocket", 14,
            [
                [0x81, 5, 0x68, 0x65, 0x6C, 0x6C, 0x6F], [0x01, 1, 0x61, 0x89, 1, 0x62, 0x80, 1, 0x63],
                [0xC1, 7, 0xF2, 0x48, 0xCD, 0xC9, 0xC9, 7, 0], [0x82, 0x7E, 0, 3, 1, 2, 3],
                [0x88, 2, 3, 0xE8], [0x81, 0x85, 1, 2, 3, 4, 0x69, 0x67, 0x6F, 0x68, 0x6E],
                Array("server_max_window_bits=10; client_no_context_takeover".utf8),
            ]),
        FuzzTarget(
            "http2", 16,
            [
                [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88, 0, 0, 5, 0, 1, 0, 0, 0, 1, 0x68, 0x65, 0x6C, 0x6C, 0x6F],
                [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100], [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
                [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8], [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
                [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0],
                // A field whose value has blanks around it.
                [0, 0, 9, 1, 5, 0, 0, 0, 1, 0x88, 0, 1, 0x61, 4, 0x20, 0x62, 0x20, 0x20],
            ]),
    ]
}

/// An input made of samples of its target, by the seed and its number alone.
private struct SmokeInput {
    let bytes: [UInt8]

    init(_ seed: UInt64, _ number: UInt64, _ target: FuzzTarget) {
        var random = Generator(state: seed &* 1_000_003 &+ number &* 31 &+ UInt64(target.selector))
        var input: [UInt8] = []
        for _ in 0...Int.random(in: 0...2, using: &random) {
            input += target.samples[Int.random(in: 0..<target.samples.count, using: &random)]
        }
        for _ in 0..<Int.random(in: 0...8, using: &random) { Self.mutate(&input, &random) }
        let selector = target.selector + 18 * UInt8.random(in: 0...12, using: &random)
        bytes = [selector, UInt8.random(in: .min ... .max, using: &random)] + input
    }

    private static func mutate(_ input: inout [UInt8], _ random: inout Generator) {
        guard !input.isEmpty else { return input.append(UInt8.random(in: .min ... .max, using: &random)) }
        let place = Int.random(in: 0..<input.count, using: &random)
        let end = min(input.count, place + Int.random(in: 1...16, using: &random))
        switch Int.random(in: 0..<5, using: &random) {
        case 0: input.insert(UInt8.random(in: .min ... .max, using: &random), at: place)
        case 1: input.removeSubrange(place..<end)
        case 2: input.insert(contentsOf: input[place..<end], at: place)
        case 3: input.swapAt(place, Int.random(in: 0..<input.count, using: &random))
        default: input[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        }
    }

    /// SplitMix64.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
            return word ^ word >> 31
        }
    }
}
#endif
