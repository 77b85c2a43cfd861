// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 9651, and the fields of draft-ietf-httpbis-resumable-upload.
@Suite struct StructuredFieldTests {
    @Test("Integers are parsed") func integers() {
        for (text, number) in [
            ("100", 100), ("0", 0), ("-0", 0), ("-42", -42), ("007", 7), ("  42  ", 42),
            ("999999999999999", 999_999_999_999_999),
            ("-999999999999999", -999_999_999_999_999), ("5;a;b=?0;c=\"x\\\"\";  d=:YQ==:", 5),
        ] as [(String, Int64)] {
            #expect(StructuredField.integer(text) == number, "\(text)")
        }
        for bad in [
            "", " ", "-", "--1", "+1", "1 2", "1,2", "1, 1", "1.0", "1.", "1000000000000000", "0000000000000001", "a",
            "\"1\"", "?1", "1;", "1;A",
            "1 ;a", "1;a=", "\t1", "1\t", "0x1", "\u{ff11}", "@1", "(1)", "1;a;", "1\0",
        ] {
            #expect(StructuredField.integer(bad) == nil, "\(bad)")
        }
    }

    @Test("The work for a dictionary or for parameters is that of their length", .timeLimit(.minutes(4)))
    func length() {
        let count = 200_000
        let members = (0..<count).map { "k\($0)=\($0)" } + ["k0=7"]
        let integers = StructuredField.integers(members.joined(separator: ","))
        #expect(integers?.count == count && integers?["k0"] == 7 && integers?["k199999"] == 199_999)
        #expect(StructuredField.dictionary("a;\(members.joined(separator: ";"))")?.first?.parameters.count == count)
    }

    @Test("Booleans are parsed") func booleans() {
        #expect(
            StructuredField.boolean("?1") == true && StructuredField.boolean("?0") == false
                && StructuredField.boolean(" ?1;x ") == true)
        for bad in ["", "?", "?2", "?true", "true", "1", "? 1", "?1?1", "?1, ?1", "?T", "?10"] {
            #expect(StructuredField.boolean(bad) == nil, "\(bad)")
        }
    }

    @Test("Dictionaries are parsed") func dictionaries() {
        func read(_ text: String) -> [String: Int64]? { StructuredField.integers(text) }
        #expect(
            read("max-size=1234567890, max-append-size=10000000") == [
                "max-size": 1_234_567_890, "max-append-size": 10_000_000,
            ])
        #expect(read("") == [:] && read("  ") == [:])
        #expect(read(" a=1\t,\t b=-2;x=1 ,c=3 ") == ["a": 1, "b": -2, "c": 3])
        #expect(read("a=1, a=2") == ["a": 2] && read("a=1, a=x") == [:], "the last counts")
        #expect(read("*a-b_c.d*1=1") == ["*a-b_c.d*1": 1])
        // Unknown members are skipped.
        let others = [
            "1.5", "-0.125", "\"a,b=\\\\\"", "tok:en/*", "*", ":aGk=:", "::", "?0", "@-62135596800", "%\"f%c3%bcr\"",
            "(1 \"x\";a  tok)", "()", "(1);q=1.0",
        ]
        for other in others {
            #expect(read("x=\(other), max-age=60") == ["max-age": 60], "\(other)")
            #expect(read("max-age=60;y=\(other.hasPrefix("(") ? "1" : other)") == ["max-age": 60], "\(other)")
        }
        #expect(read("x, max-age=60") == ["max-age": 60] && read("x;a=1, max-age=60") == ["max-age": 60])
        for bad in [
            ",", "a=1,", "a=1,,b=2", "a=1 b=2", "a=", "=1", "A=1", "1=1", "a =1", "a= 1", "a=1;", "a=1;B", "-a=1",
            "a=\"", "a=\"\\a\"", "a=\"\u{e9}\"",
            "a=:YQ", "a=:Y Q:", "a=(1", "a=(1,2)", "a=(1\t2)", "a=(1\"x\")", "a=@1.5", "a=@", "a=%\"%\"",
            "a=%\"%C3%BC\"", "a=%\"%ff\"", "a=%x",
            "a=1234567890123.1", "a=1.1234", "a=.5", "a=?", "a=#", "\ta=1", "a=1\u{a0}", "a=((1))",
        ] {
            #expect(read(bad) == nil, "\(bad)")
        }
    }

    @Test("Several field lines form one dictionary") func severalLinesAreOneDictionary() {
        var headers: Headers = ["Upload-Limit": "max-size=1"]
        headers.append("Upload-Limit", "max-age=2")
        #expect(StructuredField.integers(headers["Upload-Limit"] ?? "") == ["max-size": 1, "max-age": 2])
    }

    @Test("Structured values are written") func writing() {
        #expect(
            StructuredField.text(true) == "?1" && StructuredField.text(false) == "?0"
                && StructuredField.text(Int64(25)) == "25")
        #expect(StructuredField.text(1_000_000_000_000_000) == nil && StructuredField.text(Int64.min) == nil)
        #expect(
            StructuredField.text(StructuredField.largestInteger).flatMap(StructuredField.integer) == 999_999_999_999_999
        )
    }

    @Test("a dictionary of byte sequences; missing padding is added (RFC 9651 4.2.7)") func byteSequences() {
        #expect(
            StructuredField.byteSequences("a=:aGk=:, b=:aGk:;x=1, c=1, d=::") == [
                "a": [104, 105], "b": [104, 105], "d": [],
            ])
        #expect(StructuredField.byteSequences("a=:a:, b=:AA==:") == ["b": [0]], "one digit is no byte")
        for bad in ["a=:aGk", "a=:a_k:", "=:aGk:"] {
            #expect(StructuredField.byteSequences(bad) == nil, "\(bad)")
        }
        #expect(StructuredField.text([104, 105]) == ":aGk=:")
    }
}

extension StructuredField.Entry {
    fileprivate var parameters: [StructuredField.Parameter] {
        switch member {
        case .item(let item): item.parameters
        case .list(let list): list.parameters
        }
    }
}
