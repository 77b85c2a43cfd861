// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

/// RFC 9110 §14.1.2 and RFC 2397.
struct ByteRangeTests {
    @Test("Range fields are parsed") func parsing() {
        #expect(ByteRange.parse("bytes=0-9") == [.span(0, 9)])
        #expect(ByteRange.parse("Bytes=5-, -3 ,1-1") == [.from(5), .last(3), .span(1, 1)])
        #expect(ByteRange.parse("bytes=99999999999999999999-") == [.from(.max)])
        for bad in [
            "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=2-1", "bytes=1-2-3", "bytes=+1-2", "lines=1-2",
            "bytes=1",
        ] {
            #expect(ByteRange.parse(bad) == nil, "\(bad)")
        }
        #expect(ByteRange.parse("bytes=" + Array(repeating: "0-0", count: 17).joined(separator: ",")) == nil)
    }

    @Test("Ranges are resolved against a length") func resolving() {
        #expect(ByteRange.span(2, 5).resolved(for: 4) == 2..<4)
        #expect(ByteRange.span(4, 5).resolved(for: 4) == nil)
        #expect(ByteRange.span(0, .max).resolved(for: 4) == 0..<4)
        #expect(ByteRange.from(3).resolved(for: 4) == 3..<4)
        #expect(ByteRange.from(0).resolved(for: 0) == nil)
        #expect(ByteRange.last(9).resolved(for: 4) == 0..<4)
        #expect(ByteRange.last(0).resolved(for: 4) == nil)
        #expect(ByteRange.last(.max).resolved(for: 4) == 0..<4)
    }

    @Test("data URLs are parsed (RFC 2397)") func dataURLs() {
        #expect(DataURL("data:,%4") == nil ? false : DataURL("data:,%4")?.payload == Array("%4".utf8))
        #expect(DataURL("data:,%zz%41%")?.payload == Array("%zzA%".utf8))
        #expect(DataURL("data:a/b;base64;base64,x")?.isBase64 == true)
        #expect(DataURL("data: text/html ; base64 ,x")?.mediaType?.essence == "text/html")
        #expect(DataURL("http://a,b") == nil && DataURL("data:") == nil && DataURL("data:#,") == nil)
        #expect(DataURL("data:;base64,YQ==")?.base64 == Array("YQ==".utf8))
        #expect(DataURL("data:;base64,YQ=")?.base64 == nil)
        #expect(DataURL("data:;base64,Y%0AQ")?.base64 == Array("YQ==".utf8))
    }
}
