// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility

/// Checklist 163 to 165.
struct PercentEscapesTests {
    @Test("reserved characters stay unless they are named; # [ ] and % are always escaped (checklist 163)")
    func reserved() {
        let reserved = String.reservedURLCharacters
        #expect(reserved == ":/?#[]@!$&'()*+,;=")
        #expect(reserved.addingPercentEscapes(using: .utf8) == ":/?%23%5B%5D@!$&'()*+,;=")
        #expect(
            reserved.addingPercentEscapes(using: .utf8, escaping: reserved)
                == "%3A%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D")
        #expect("a-b._~%20".addingPercentEscapes(using: .utf8) == "a-b._~%2520")
        #expect("a%20b#c".addingPercentEscapes(using: .utf8, leaving: "%#") == "a%20b#c")
    }

    @Test("escapes use the given encoding; a character outside of it gives nil (checklist 164)")
    func encodings() {
        #expect("é ü".addingPercentEscapes(using: .utf8) == "%C3%A9%20%C3%BC")
        #expect("é ü".addingPercentEscapes(using: .isoLatin1) == "%E9%20%FC")
        #expect("漢".addingPercentEscapes(using: .isoLatin1) == nil)
        #expect(
            "%E9".replacingPercentEscapes(using: .isoLatin1) == "é"
                && "%E9".replacingPercentEscapes(using: .utf8) == nil)
    }

    @Test("unescaping reverses escaping; named escapes may be kept (checklist 165)")
    func back() {
        let texts = ["", "plain", "rock & roll/1?a=b#c", "100 %", "%41", "é漢👩‍👩‍👧 \n\r\n\u{0}e\u{301}"]
        for text in texts {
            for extra in ["", String.reservedURLCharacters, "abc%"] {
                let escaped = text.addingPercentEscapes(using: .utf8, escaping: extra)
                #expect(escaped?.replacingPercentEscapes(using: .utf8) == text)
            }
        }
        #expect("a%2Fb%20c%2f".replacingPercentEscapes(using: .utf8, leaving: "/") == "a%2Fb c%2F")
        for broken in ["%", "%4", "%G0", "a%zz", "%é"] { #expect(broken.replacingPercentEscapes(using: .utf8) == nil) }
    }
}
