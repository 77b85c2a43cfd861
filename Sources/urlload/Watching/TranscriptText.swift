// SPDX-License-Identifier: Apache-2.0

// Converts bytes to lines of text and back without loss: the format of `--trace` and of transcripts in tests.
//
// A line stands for its bytes and CR LF. With `
// ` at its end it ends in LF alone; with a lone `\` at its end it has no line break and continues in the next line.
// `\xHH` is a byte, `\\` a backslash. All else is printable ASCII, so that received bytes cannot reach a terminal as
// control sequences.

enum TranscriptText {
    /// Longer lines are split with `\`.
    static let width = 96

    /// Returns the lines of some bytes, without `> ` or `< `.
    static func lines(_ bytes: some Sequence<UInt8>) -> [String] {
        var lines: [String] = []
        var line: [UInt8] = []
        var hasCarriageReturn = false
        func flush(_ end: String) {
            lines.append(String(decoding: line, as: UTF8.self) + end)
            line = []
        }
        for byte in bytes {
            if hasCarriageReturn {
                hasCarriageReturn = false
                if byte == UInt8(ascii: "\n") {
                    flush("")
                    continue
                }
                line += escape(UInt8(ascii: "\r"))
            }
            if line.count >= width { flush("\\") }
            switch byte {
            case UInt8(ascii: "\r"): hasCarriageReturn = true
            case UInt8(ascii: "\n"): flush("\\n")
            case UInt8(ascii: "\\"): line += [byte, byte]
            case 0x20..<0x7F: line.append(byte)
            default: line += escape(byte)
            }
        }
        if hasCarriageReturn { line += escape(UInt8(ascii: "\r")) }
        if !line.isEmpty { flush("\\") }
        return lines
    }

    private static func escape(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return [UInt8(ascii: "\\"), UInt8(ascii: "x"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
