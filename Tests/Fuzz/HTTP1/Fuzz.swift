// SPDX-License-Identifier: Apache-2.0

// Coverage-guided fuzzing of the floor. The first byte chooses the target, the second the rule by
// which the rest is cut. A broken promise stops the process, which is what the fuzzer looks for.

import Glibc
import URLLoadingWire

/// The one target that is asked for, by its number below; `nil` for all in turn.
private let only = getenv("URLLOADING_FUZZ_ONLY").flatMap { UInt8(String(cString: $0)) }

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 2 else { return 0 }
    let rest = Array(UnsafeBufferPointer(start: start + 2, count: count - 2))
    switch only ?? start[0] % 18 {
    case 0, 1, 2: fuzzCodec(.client, method: start[0] & 0x40 == 0 ? .get : .head, rest, rule: start[1])
    case 3, 4: fuzzCodec(.server, method: .get, rest, rule: start[1])
    case 5: fuzzDecoder(rest, rule: start[1])
    case 6: fuzzReferences(rest)
    case 7: fuzzValues(rest)
    case 12, 13: fuzzFTP(rest, rule: start[1])
    case 8, 9: fuzzBodies(rest, rule: start[1])
    case 10, 11: fuzzCookies(rest)
    case 14, 15: fuzzWebSocket(start[0] & 0x40 == 0 ? .client : .server, rest, rule: start[1])
    default: fuzzHTTP2(rest, rule: start[1])
    }
    return 0
}

/// A promise of the code under test.
func promise(_ holds: Bool, _ what: StaticString) {
    precondition(holds, "\(what)")
}

/// Feeds a parser that reads contiguous input, and drops what it has consumed.
/// - Parameter next: parses the unread input, and sets the number of bytes consumed. Returns false when it needs more.
func feed(
    _ bytes: [UInt8], pieces: Int, next: (_ input: inout [UInt8], _ consumed: inout Int) throws(WireViolation) -> Bool
) throws(WireViolation) {
    var input: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
        let piece = rest.prefix(pieces)
        rest = rest.dropFirst(piece.count)
        input += piece
        var hasMore = true
        while hasMore {
            var consumed = 0
            hasMore = try next(&input, &consumed)
            promise(consumed <= input.count, "no more than there is")
            input.removeFirst(consumed)
        }
    }
}
