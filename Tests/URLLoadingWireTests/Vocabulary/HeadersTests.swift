// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct HeadersTests {
    @Test("Field names are compared without case") func namesIgnoreCase() {
        let name: FieldName = "X-Trace"
        #expect(name == "x-tRACE" && name.hashValue == FieldName("X-TRACE").hashValue)
        #expect(name != "X-Trac" && name != "X_Trace" && FieldName("@") != "`" && FieldName("[") != "{")
        #expect(name.description == "X-Trace")
        #expect(FieldName("\u{212A}") != "k", "security 34")
        #expect(name.isValid && !FieldName("").isValid && !FieldName("a b").isValid && !FieldName("é").isValid)
    }

    @Test("Order, case and duplicates of fields are kept") func orderCaseAndDuplicates() {
        var fields: Headers = [.accept: "a", "B": "1", "aCCept": "b"]
        #expect(fields.map(\.name.description) == ["Accept", "B", "aCCept"])
        #expect(fields[.accept] == "a, b" && fields.values(of: .accept) == ["a", "b"])
        #expect(fields["missing"] == nil && !fields.contains("missing"))
        fields[.accept] = "c"
        #expect(fields.map { "\($0.name)=\($0.value)" } == ["Accept=c", "B=1"])
        fields[.accept] = nil
        fields["C"] = " 2\t"
        #expect(fields.map { "\($0.name)=\($0.value)" } == ["B=1", "C=2"])
        fields.remove("b")
        #expect(fields.count == 1 && !fields.isEmpty)
    }

    @Test("Cookie fields are joined with semicolons, Set-Cookie fields are not joined") func joining() {
        let fields: Headers = [.cookie: "a=1", .cookie: "b=2", .setCookie: "c=3, x", .setCookie: "d=4"]
        #expect(fields[.cookie] == "a=1; b=2")
        #expect(fields[.setCookie] == "c=3, x")
        #expect(fields.values(of: .setCookie) == ["c=3, x", "d=4"])
    }

    @Test("Headers with the same meaning are equal") func equalByMeaning() {
        let fields: Headers = ["A": "1", "B": "2", "a": "3"]
        let same: Headers = ["b": "2", "a": "1", "A": "3"]
        #expect(fields == same && fields.hashValue == same.hashValue)
        #expect(fields != ["A": "3", "B": "2", "A": "1"])
        #expect(fields != ["A": "1", "B": "2"] && fields != ["A": "1", "B": "2", "A": "4"])
    }

    @Test("Descriptions hide secrets") func secretsAreHidden() {
        let fields: Headers = [
            .authorization: "s3cret", .proxyAuthorization: "s3cret", .cookie: "s3cret", .setCookie: "s3cret",
            .accept: "x",
        ]
        var dumped = ""
        dump(fields, to: &dumped)
        for text in [fields.description, "\(fields)", String(reflecting: fields), dumped] {
            #expect(!text.contains("s3cret"))
        }
        #expect(fields.description.hasSuffix("Accept: x"))
    }

    @Test("Values that are not UTF-8 keep their bytes") func bytesThatAreNoUTF8() {
        var fields = Headers()
        let value: [UInt8] = [0xE9, 0x20, 0x41]
        bytes("A").withUnsafeBytes { name in value.withUnsafeBytes { fields.appendRaw(name: name, value: $0) } }
        #expect(fields["A"] == "\u{e9} A")
        #expect(fields.withValueBytes(of: "a") { Array($0) } == value)
    }
}
