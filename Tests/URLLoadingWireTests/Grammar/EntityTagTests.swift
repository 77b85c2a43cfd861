// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 9110 8.8.3.
@Suite struct EntityTagTests {
    @Test("Strong and weak entity tags are parsed") func grammar() {
        #expect(EntityTag("\"xyzzy\"")?.opaque == bytes("xyzzy") && EntityTag("\"xyzzy\"")?.isWeak == false)
        #expect(EntityTag("W/\"xyzzy\"")?.isWeak == true && EntityTag("W/\"xyzzy\"")?.opaque == bytes("xyzzy"))
        #expect(EntityTag("\"\"")?.opaque == [] && EntityTag("W/\"\"")?.opaque == [])
        #expect(EntityTag("\"a\\b,c;d!#'\"")?.opaque == bytes("a\\b,c;d!#'"), "there is no escaping")
        for bad in [
            "", "xyzzy", "\"", "\"a", "a\"", "w/\"a\"", "W\"a\"", "W/a", "W/ \"a\"", "\"a b\"", "\"a\"b\"", "\"a\" ",
            " \"a\"",
            "\"a\u{7f}\"", "\"a\tb\"", "\"a\0b\"", "\"a\", \"b\"", "'a'", "W/W/\"a\"", "*",
        ] {
            #expect(EntityTag(bad) == nil, "\(bad)")
        }
    }

    /// The table of RFC 9110 8.8.3.2.
    @Test("Tags are compared strongly and weakly") func comparison() throws {
        for (left, right, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true), ("\"1\"", "W/\"1\"", false, true), ("\"1\"", "\"1\"", true, true),
        ] {
            let tag = try #require(EntityTag(left))
            #expect(
                tag.matchesStrongly(EntityTag(right)) == strong && tag.matchesWeakly(EntityTag(right)) == weak,
                "\(left) \(right)")
        }
        let tag = try #require(EntityTag("\"1\""))
        #expect(!tag.matchesStrongly(nil) && !tag.matchesWeakly(nil))
        #expect(!(EntityTag("\"\"")?.matchesWeakly(nil) ?? true))
    }

    /// Texts that Unicode considers equal are different bytes.
    @Test("Tags are compared as bytes") func tagsAreBytes() throws {
        let composed = try #require(EntityTag("\"\u{e9}\""))
        let decomposed = EntityTag("\"e\u{301}\"")
        #expect(!composed.matchesStrongly(decomposed) && composed != decomposed)
        var received = Headers()
        bytes("ETag").withUnsafeBytes { name in
            ([0x22, 0xE9, 0x22] as [UInt8]).withUnsafeBytes { received.appendRaw(name: name, value: $0) }
        }
        let latin = try #require(EntityTag(in: received))
        #expect(latin.opaque == [0xE9] && latin != composed && latin.description == "\"\u{e9}\"")
        var sent = Headers()
        latin.append(to: &sent, as: .ifRange)
        #expect(sent.withValueBytes(of: .ifRange) { Array($0) } == [0x22, 0xE9, 0x22], "sent as it was received")
    }

    @Test("A message has a tag only if it has one valid field") func ofAMessage() {
        #expect(EntityTag(in: [.etag: "\"a\""]) == EntityTag("\"a\""))
        #expect(
            EntityTag(in: [.etag: "\"a\"", .etag: "\"a\""]) == nil && EntityTag(in: [:]) == nil
                && EntityTag(in: [.etag: "a"]) == nil)
        #expect(EntityTag("W/\"a\"")?.description == "W/\"a\"")
    }
}
