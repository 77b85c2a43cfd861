// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

/// RFC 6266, RFC 8187, and deviations that servers send.
@Suite struct ContentDispositionTests {
    func fileName(_ text: String) -> String? { ContentDisposition(text)?.fileName }

    @Test("Disposition types are read") func types() {
        #expect(ContentDisposition("inline")?.type == "inline")
        #expect(ContentDisposition("ATTACHMENT")?.type == "attachment" && ContentDisposition("x-y; a=b")?.type == "x-y")
        #expect(ContentDisposition("form-data; name=a")?.type == "form-data")
        for broken in [
            "filename=a", "; filename=a", "\"attachment\"; filename=a", "attachment ;filename=a;", ";;filename=a",
            "(; filename=a",
        ] {
            #expect(ContentDisposition(broken)?.type == "attachment" && fileName(broken) == "a", "\(broken)")
        }
        for nothing in ["", " ", ";", " ; ;"] { #expect(ContentDisposition(nothing) == nil) }
    }

    @Test("The examples of RFC 6266 are read") func theExamplesOfRFC6266() {
        #expect(fileName("Attachment; filename=example.html") == "example.html")
        #expect(fileName("INLINE; FILENAME= \"an example.html\"") == "an example.html")
        #expect(fileName("attachment; filename*= UTF-8''%e2%82%ac%20rates") == "\u{20ac} rates")
        #expect(fileName("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates") == "\u{20ac} rates")
    }

    @Test("filename* has precedence over filename in either order") func bothFormsInEitherOrder() {
        #expect(fileName("attachment; filename*=UTF-8'en'b%2Ec; filename=a") == "b.c")
        #expect(fileName("attachment; filename=a; filename=b") == "a")
        #expect(fileName("attachment; filename*=UTF-8''a; filename*=UTF-8''b") == "a")
        #expect(fileName("attachment") == nil)
        #expect(fileName("attachment; filename=\"\"") == "")
    }

    @Test("Extended values are decoded (RFC 8187)") func extendedValues() {
        #expect(fileName("attachment; filename*=iso-8859-1''foo-%E4.html") == "foo-\u{e4}.html")
        #expect(fileName("attachment; filename*=UTF-8''foo-%c3%a4.html") == "foo-\u{e4}.html")
        #expect(fileName("attachment; filename*=\"UTF-8''foo-%c3%a4.html\"") == "foo-\u{e4}.html", "quoted by some")
        #expect(fileName("attachment; filename*=UTF-8''a'b") == "a'b")
        for broken in [
            "UTF-8''%", "UTF-8''%4", "UTF-8''%zz", "UTF-8''%ff", "UTF-8''%e4", "UTF-8'x", "''x", "x", "koi8-r''x", "",
            "UTF-8''%ed%a0%80",
        ] {
            #expect(fileName("attachment; filename*=\(broken); filename=plain") == "plain", "\(broken)")
            #expect(fileName("attachment; filename*=\(broken)") == nil, "\(broken)")
        }
    }

    @Test("Quoted strings are read") func quotedStrings() {
        #expect(fileName(#"attachment; filename="f\oo.html""#) == "foo.html")
        #expect(fileName(#"attachment; filename="\"quoting\" tested.html""#) == "\"quoting\" tested.html")
        #expect(fileName(#"attachment; filename="Here's a semicolon;.html""#) == "Here's a semicolon;.html")
        #expect(fileName(#"attachment; foo="\"\\";filename="foo.html""#) == "foo.html")
        #expect(
            fileName(#"attachment; filename="C:\dir\a b.txt""#) == #"C:\dir\a b.txt"#, "never escaped by who sends it")
        #expect(fileName(#"attachment; filename="C:\\dir\\a.txt""#) == #"C:\dir\a.txt"#)
        #expect(fileName(#"attachment; filename="\\server\\x""#) == #"\server\x"#)
        #expect(fileName("attachment; filename=\"foo-\u{e4}.html\"") == "foo-\u{e4}.html")
    }

    @Test("Broken fields of real servers are read") func brokenInTheField() {
        #expect(fileName("attachment; filename=foo bar.html") == "foo bar.html")
        #expect(fileName("attachment; filename=foo[1](2).html ; x=y") == "foo[1](2).html")
        #expect(fileName("attachment; filename = \"a\"") == "a")
        #expect(fileName("attachment; filename=\"foo.html") == "foo.html")
        #expect(fileName("attachment; filename=\"foo.html\\") == "foo.html\\")
        #expect(fileName("attachment; filename=\"a\" junk; filename=b") == "a")
        #expect(fileName("attachment; filename=foo, bar.html") == "foo, bar.html")
        #expect(fileName("attachment; xfilename=a") == nil)
        #expect(fileName("attachment; filename") == nil)
        #expect(
            fileName("attachment filename=a") == nil
                && ContentDisposition("attachment filename=a")?.type == "attachment")
        #expect(fileName("attachment; =a; filename=b") == "b")
        #expect(fileName("attachment; filename==a") == "=a")
        #expect(fileName("attachment; filename=") == "")
    }

    /// The parser neither sanitises names nor decodes undefined escapes (RFC 6266 §4.3, §C.1, §C.4).
    @Test("Names are returned as stated") func asStated() {
        for name in [
            "../../etc/passwd", "/etc/passwd", "..", "~", "foo-%41.html", "=?UTF-8?Q?foo-=C3=A4.html?=", "con.txt",
        ] {
            #expect(fileName("attachment; filename=\"\(name)\"") == name)
        }
        #expect(fileName("attachment; filename*=UTF-8''..%2F..%2Fa%00") == "../../a\0")
        #expect(
            fileName("attachment; filename*0=\"foo.\"; filename*1=\"html\"") == nil,
            "RFC 2231 continuations are not in RFC 6266")
    }

    @Test("form-data parameters are read") func formData() {
        let part = ContentDisposition(#"form-data; name="a\"; filename="b%22\c.txt""#)
        #expect(part?.name == #"a\"# && part?.fileName == #"b%22\c.txt"#, "WHATWG: a backslash is one")
        #expect(
            ContentDisposition("form-data; name=user")?.name == "user" && ContentDisposition("form-data")?.name == nil)
    }
}
