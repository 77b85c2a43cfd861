// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// Whole structured fields: parsed with their parameters, and written (RFC 9651 §4.1, §4.2).
@Suite struct StructuredValueTests {
    @Test("A dictionary of every type is written as it was read") func roundTrip() {
        for text in [
            "a=1", "a=-42;b", "a=1.5", "a=-0.125", "a=\"x\"", "a=\"\\\"\\\\ ,;\"", "a=tok:en/*", "a=*", "a=:aGk=:", "a",
            "a=?0", "a=@-62135596800", "a=%\"f%c3%bcr\"", "a=(1 \"x\";b tok);c=2", "a=()", "a;b=1;c=\"d\", e=()",
            "sig1=(\"@method\" \"@query-param\";name=\"Pet\");created=1618884473;keyid=\"k\"",
        ] {
            let read = StructuredField.dictionary(text)
            #expect(read.flatMap { StructuredField.text($0) } == text, "\(text)")
        }
    }

    @Test("Other spellings get the canonical one") func canonical() {
        for (text, written) in [
            ("  a=1 ,\t b=2  ", "a=1, b=2"), ("a=01", "a=1"), ("a=1.50", "a=1.5"), ("a=1.0", "a=1.0"), ("a=?1", "a"),
            ("a=1;b=?1", "a=1;b"), ("a=(  1   2  )", "a=(1 2)"), ("a=:aGk:", "a=:aGk=:"), ("a=1, b=2, a=3", "a=3, b=2"),
            ("a=1;b=1;c;b=2", "a=1;b=2;c"), ("a=1;  b", "a=1;b"), ("", ""), ("a=-0", "a=0"),
            ("a=%\"%25%22\"", "a=%\"%25%22\""),
        ] {
            let read = StructuredField.dictionary(text)
            #expect(read.flatMap { StructuredField.text($0) } == written, "\(text)")
        }
    }

    @Test("What a type cannot hold is not written") func limits() {
        for item in [
            StructuredField.BareItem.integer(1_000_000_000_000_000), .decimal(1_000_000_000_000_000), .string("ü"),
            .string("a\nb"), .token(""), .token("1a"), .token("a b"), .date(.max), .undecodable,
        ] {
            #expect(StructuredField.text(item) == nil, "\(item)")
        }
        #expect(StructuredField.text([.init("a", .item(.init(.integer(1), [.init("b", .string("\n"))])))]) == nil)
        #expect(StructuredField.text(StructuredField.InnerList([.init(.undecodable)])) == nil)
    }

    @Test("Values keep what they say") func values() throws {
        let read = try #require(StructuredField.dictionary("a=12345.678, b=\"q\\\"\", c=%\"%c3%bc\", d=@1, e=:a:"))
        let items = read.map(\.member)
        #expect(
            items == [
                .item(.init(.decimal(12_345_678))), .item(.init(.string("q\""))), .item(.init(.displayString("ü"))),
                .item(.init(.date(1))), .item(.init(.undecodable)),
            ])
    }
}
