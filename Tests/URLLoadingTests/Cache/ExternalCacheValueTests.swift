// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// The values of an external cache: its records, what it may be given, and its changes.
struct ExternalCacheValueTests {
    private static let url = CacheKey(text: "http://a.test/x")
    private static let key = StoreKey(url, isShared: true, checks: nil)

    private func response(_ headers: Headers = [.cacheControl: "max-age=60"]) -> StoredResponse {
        StoredResponse(
            key: Self.url, url: Self.url.text, status: .ok, version: .http11, headers: headers,
            varying: ["accept": "text/html", "accept-language": nil], requestTime: 100, responseTime: 101)
    }

    private func bytes(_ record: StoreRecord, _ signingKey: [UInt8]? = nil) async throws -> Data {
        let value = try #require(record.value(for: Self.key, signedWith: signingKey))
        return try await value.data
    }

    private func record(
        _ bytes: Data, pieces: Int = .max, key: StoreKey = Self.key, signedWith signingKey: [UInt8]? = nil
    ) -> StoreRecord? {
        var reader = StoreReader(maximumBody: 1_000, budget: MemoryBudget(limit: 1_000))
        do throws(StoreReader.Fault) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = [UInt8](rest.prefix(pieces))
                rest = rest.dropFirst(pieces)
                try take(piece, &reader)
            }
            return try reader.record(key, signedWith: signingKey)
        } catch {
            return nil
        }
    }

    private func take(_ piece: [UInt8], _ reader: inout StoreReader) throws(StoreReader.Fault) {
        let result = piece.withUnsafeBytes { bytes -> Result<Void, StoreReader.Fault> in
            do throws(StoreReader.Fault) { return .success(try reader.take(bytes)) } catch { return .failure(error) }
        }
        try result.get()
    }

    private func same(_ record: StoreRecord?, _ response: StoredResponse, _ body: [UInt8]) -> Bool {
        guard case .response(let own, let chunk)? = record else { return false }
        return own.key == response.key && own.url == response.url && own.status == response.status
            && own.headers == response.headers && own.varying == response.varying && own.source == response.source
            && own.requestTime == response.requestTime && own.responseTime == response.responseTime
            && own.extent == .whole(Int64(body.count)) && [UInt8](chunk) == body
    }

    @Test("a record is read as it was written, in one piece or byte by byte; another key or signature refuses it")
    func records() async throws {
        for body in [[], Array("body".utf8)] as [[UInt8]] {
            let response = response()
            let written = try await bytes(.response(response, body.withUnsafeBytes { Chunk(copying: $0) }))
            for pieces in [Int.max, 1, 7, 49, 50, 51] {
                #expect(same(record(written, pieces: pieces), response, body))
            }
            #expect(record(written, key: StoreKey(Self.url, isShared: false, checks: nil)) == nil)
            #expect(record(written, key: StoreKey(Self.url, isShared: true, checks: "other")) == nil)
            #expect(record(written, signedWith: [1]) == nil)
            let signed = try await bytes(.response(response, body.withUnsafeBytes { Chunk(copying: $0) }), [1])
            #expect(same(record(signed, signedWith: [1]), response, body))
            #expect(record(signed, signedWith: [2]) == nil && record(signed) == nil)
        }
        let index = StoreIndex(names: ["accept", "x-a"], salt: 7)
        let written = try await bytes(.index(index))
        guard case .index(let read)? = record(written) else {
            Issue.record("no index")
            return
        }
        #expect(read == index)
    }

    @Test("a record that lost its end, or has one bit changed anywhere, is refused")
    func damage() async throws {
        let body = Array("body".utf8)
        let written = try await bytes(.response(response(), body.withUnsafeBytes { Chunk(copying: $0) }))
        for count in 0..<written.count { #expect(record(written.prefix(count)) == nil, "\(count)") }
        #expect(record(written + [0]) == nil)
        for index in written.indices {
            for bit in 0..<8 {
                var changed = written
                changed[index] ^= 1 << bit
                #expect(record(changed) == nil, "\(index)")
            }
        }
    }

    @Test("a record with a right digest and parts that no server sends is refused")
    func forged() async throws {
        var odd: [StoredResponse] = []
        for (name, value) in [("a b", "x"), ("", "x"), ("x", "a\r\nSet-Cookie: b")] {
            var headers = Headers()
            Array(name.utf8).withUnsafeBytes { name in
                Array(value.utf8).withUnsafeBytes { headers.appendRaw(name: name, value: $0) }
            }
            odd.append(response(headers))
        }
        for time in [Double.nan, .infinity] {
            var response = response()
            response.responseTime = time
            odd.append(response)
        }
        for status in [Status.notModified, .partialContent, .switchingProtocols] {
            var response = response()
            response.status = status
            odd.append(response)
        }
        var elsewhere = response()
        elsewhere.url = "http://b.test/"
        odd.append(elsewhere)
        for response in odd {
            let written = try await bytes(
                .response(response, Chunk(copying: UnsafeRawBufferPointer(start: nil, count: 0))))
            #expect(record(written) == nil, "\(response.headers) \(response.status)")
        }
    }

    @Test("a head that is too large is not written")
    func largeHead() {
        let large = response(["x": String(repeating: "a", count: StorePrefix.maximumHead)])
        let record = StoreRecord.response(large, Chunk(copying: UnsafeRawBufferPointer(start: nil, count: 0)))
        #expect(record.value(for: Self.key, signedWith: nil) == nil)
    }

    @Test("a response from the store that names an owner, or is private in a shared cache, is not used")
    func adopted() throws {
        let url = try #require(URL(string: Self.url.text))
        let query = CacheQuery(Request(url: url))
        for name in CacheOwner.names {
            var owned = response()
            owned.varying = [name: "x"]
            let isUsed = StoreAdmission(isShared: true).adopted(owned, query) != nil
            #expect(isUsed == [CacheOwner.trust, CacheOwner.server].contains(name), "\(name)")
        }
        let own = response([.cacheControl: "private, max-age=60"])
        #expect(StoreAdmission(isShared: true).adopted(own, query) == nil)
        #expect(StoreAdmission(isShared: false).adopted(own, query) != nil)
    }

    @Test(
        "a record is of use while it is fresh, while it may be stale, and with a validator for a day",
        arguments: [
            (["Cache-Control": "max-age=60"], 60), (["Cache-Control": "max-age=60", "ETag": "\"1\""], 86_460),
            (["Cache-Control": "max-age=60, stale-if-error=100000"], 100_060), (["Cache-Control": "max-age=0"], 1),
            (["Cache-Control": "max-age=4000000000"], 31_536_000), (["Cache-Control": "max-age=60", "Age": "20"], 40),
        ] as [([String: String], Double)])
    func lifetimes(_ fields: [String: String], _ seconds: Double) {
        var headers = Headers()
        for (name, value) in fields { headers.append(FieldName(name), value) }
        var response = response(headers)
        response.requestTime = 101
        #expect(response.usefulLifetime == seconds)
    }

    // MARK: Changes

    private func entry(_ text: String) -> StoreChanges.Change {
        let body = Array(text.utf8).withUnsafeBytes { Chunk(copying: $0) }
        return .store(StoreEntry(response: response(), body: body, place: .url))
    }

    private func word(_ change: StoreChanges.Change?) -> String {
        switch change {
        case .store(let entry)?: String(decoding: [UInt8](entry.body), as: UTF8.self)
        case .remove?: "remove"
        case nil: "none"
        }
    }

    @Test("one change of a key is made at a time, then the last of those that came meanwhile")
    func order() {
        var changes = StoreChanges()
        let isNow = (
            changes.add(entry("a"), to: Self.key), changes.add(entry("b"), to: Self.key),
            changes.add(.remove, to: Self.key)
        )
        #expect(isNow == (true, false, false))
        #expect(word(changes.last(Self.key)) == "remove")
        let first = changes.ended(Self.key, isMade: true, now: 7)
        #expect(word(first) == "remove" && word(changes.last(Self.key)) == "remove")
        let second = changes.ended(Self.key, isMade: true, now: 7)
        #expect(word(second) == "none" && changes.isEmpty)
    }

    @Test("a removal that failed, or that a response replaced which could not be stored, stays until one is made")
    func owed() {
        var changes = StoreChanges()
        _ = changes.add(entry("a"), to: Self.key)
        _ = changes.add(.remove, to: Self.key)
        _ = changes.add(entry("b"), to: Self.key)
        let next = changes.ended(Self.key, isMade: false, now: 7)
        #expect(word(next) == "b")
        let last = changes.ended(Self.key, isMade: false, now: 7)
        #expect(word(last) == "none" && word(changes.last(Self.key)) == "remove")
        let repeats = (changes.repeats(Self.key), changes.repeats(Self.key))
        #expect(repeats == (true, false))
        _ = changes.ended(Self.key, isMade: false, now: 7)
        let isNow = changes.add(entry("c"), to: Self.key)
        #expect(isNow)
        _ = changes.ended(Self.key, isMade: true, now: 7)
        #expect(changes.isEmpty)
    }

    @Test("a response that could not be stored leaves nothing, and the number of failed removals is bounded")
    func bounded() {
        var changes = StoreChanges()
        _ = changes.add(entry("a"), to: Self.key)
        _ = changes.ended(Self.key, isMade: false, now: 7)
        #expect(changes.isEmpty)
        let keys = (0..<2_000).map { StoreKey(CacheKey(text: "\($0)"), isShared: true, checks: nil) }
        for key in keys {
            _ = changes.add(.remove, to: key)
            _ = changes.ended(key, isMade: false, now: 7)
        }
        #expect(keys.count { changes.last($0) != nil } == StoreChanges.maximumFailed)
        #expect(changes.forgottenUntil == 7)
    }
}
