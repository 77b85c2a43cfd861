// SPDX-License-Identifier: Apache-2.0

// The records that an external cache keeps: their keys and their bytes. A record proves that it is complete, unchanged,
// and stored under its own key: the digest covers the key too.
//
//     "ULRC" │ version │ kind │ head's length (4) │ body's length (8) │ digest (32) │ head │ body
//
// A response that varies has a record of its own for each variant. The record under the key of its URL is then an index
// with the names that Vary lists and a random number, of which the keys of the variants are made: a removal of that one
// record makes all variants unreachable.

import URLLoadingIO
import URLLoadingWire

/// The key of a record in an external cache: 64 hexadecimal digits.
struct StoreKey: Hashable, Sendable {
    let text: String

    /// The key of a URL. Caches with other rules, and servers that passed other checks, have other keys.
    init(_ key: CacheKey, isShared: Bool, checks: String?) {
        self.init(words: ["response 1", isShared ? "shared" : "own", checks ?? "", key.text])
    }

    private init(words: [String]) { text = Digest.hex(words.joined(separator: "\u{0}").utf8) }

    /// The key of the variant that a request selects; `nil` if the fields that will be sent are not known.
    func variant(_ index: StoreIndex, _ query: CacheQuery) -> StoreKey? {
        guard query.knowsCookies || !index.names.contains("cookie") else { return nil }
        let fields = query.fields
        let values = index.names.map { name in Varying.value(of: name, in: fields).map { "=\($0)" } ?? "" }
        return StoreKey(words: ["variant", text, "\(index.salt)"] + values)
    }
}

/// The fields by which the responses of a URL vary, in order, and a random number.
struct StoreIndex: Sendable, Equatable {
    let names: [String]
    let salt: UInt64

    init(names: [String], salt: UInt64) { (self.names, self.salt) = (names, salt) }

    /// A new index for a response.
    init(_ response: StoredResponse) {
        names = Self.names(response)
        salt = RandomWords.draw(1).first ?? UInt64.random(in: 0 ... .max)
    }

    /// The names of the fields by which a response varies. A name that Vary lists is among the varying fields even if
    /// the request did not have it.
    static func names(_ response: StoredResponse) -> [String] {
        response.varying.keys.filter { !CacheOwner.names.contains($0) }.sorted()
    }

    /// Whether this index distinguishes a response from its variants.
    func covers(_ response: StoredResponse) -> Bool { Set(names).isSuperset(of: Self.names(response)) }
}

/// The bytes before the head of a record.
struct StorePrefix: Sendable, Equatable {
    enum Kind: UInt8, Sendable { case response = 1, index = 2 }
    let kind: Kind
    let headLength: Int
    let bodyLength: Int
    let digest: [UInt8]

    static let size = 50
    static let maximumHead = 256 << 10
    private static let magic = Array("ULRC".utf8)
    private static let version: UInt8 = 1

    /// Fails for bytes of another kind or version, and for lengths beyond their limits.
    init?(_ bytes: UnsafeRawBufferPointer, maximumBody: Int) {
        guard bytes.count == Self.size, bytes.prefix(4).elementsEqual(Self.magic), bytes[4] == Self.version,
            let kind = Kind(rawValue: bytes[5])
        else { return nil }
        var reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[6..<18]))
        guard let head = reader.number(UInt32.self), let body = reader.number(UInt64.self),
            head <= UInt32(Self.maximumHead), body <= UInt64(clamping: maximumBody)
        else { return nil }
        (self.kind, headLength, bodyLength) = (kind, Int(head), Int(body))
        digest = Array(bytes[18...])
    }

    init?(_ kind: Kind, _ head: [UInt8], _ body: Chunk?, _ key: StoreKey, signedWith signingKey: [UInt8]?) {
        guard head.count <= Self.maximumHead else { return nil }
        (self.kind, headLength, bodyLength) = (kind, head.count, body?.count ?? 0)
        let digest = head.withUnsafeBytes {
            Self.digest(kind, $0, body, key, signedWith: signingKey)
        }
        guard let digest else { return nil }
        self.digest = digest
    }

    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.put(UInt32(headLength))
        writer.put(UInt64(bodyLength))
        return Self.magic + [Self.version, kind.rawValue] + writer.bytes + digest
    }

    /// Whether the digest is that of a head and a body under a key.
    func proves(_ head: UnsafeRawBufferPointer, _ body: Chunk?, _ key: StoreKey, signedWith signingKey: [UInt8]?)
        -> Bool
    {
        guard head.count == headLength, (body?.count ?? 0) == bodyLength,
            let right = Self.digest(kind, head, body, key, signedWith: signingKey), right.count == digest.count
        else { return false }
        // Without an early end, which would tell a forger how many bytes are right.
        return zip(right, digest).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// The SHA-256 of the record and its key, signed if there is a key to sign with; `nil` where OpenSSL refuses it.
    private static func digest(
        _ kind: Kind, _ head: UnsafeRawBufferPointer, _ body: Chunk?, _ key: StoreKey, signedWith signingKey: [UInt8]?
    ) -> [UInt8]? {
        var writer = ByteWriter()
        writer.put(version)
        writer.put(kind.rawValue)
        writer.put(key.text)
        writer.put(UInt64(head.count))
        var hash = DigestHash.Running(.sha256)
        writer.bytes.withUnsafeBytes { hash.update($0) }
        hash.update(head)
        body?.withUnsafeBytes { hash.update($0) }
        guard let digest = hash.finishBytes(), digest.count == 32 else { return nil }
        guard let signingKey else { return digest }
        return MessageKey.hmac(signingKey, digest)
    }
}

/// A record of an external cache.
enum StoreRecord: Sendable {
    case response(StoredResponse, Chunk)
    case index(StoreIndex)

    // MARK: Writing

    /// The record as a value to store; `nil` if its head is too large.
    func value(for key: StoreKey, signedWith signingKey: [UInt8]?) -> ResponseStoreValue? {
        var writer = ByteWriter()
        let (kind, body): (StorePrefix.Kind, Chunk?)
        switch self {
        case .response(var response, let content):
            response.extent = .whole(Int64(content.count))
            response.put(into: &writer)
            response.source.put(into: &writer)
            (kind, body) = (.response, content)
        case .index(let index):
            writer.put(index.salt)
            writer.put(UInt32(index.names.count))
            for name in index.names { writer.put(name) }
            (kind, body) = (.index, nil)
        }
        let prefix = StorePrefix(kind, writer.bytes, body, key, signedWith: signingKey)
        return prefix.map { ResponseStoreValue($0.bytes + writer.bytes, body) }
    }

    // MARK: Reading

    /// Fails unless the digest proves the bytes, and they are what a record of this library may contain.
    init?(
        _ prefix: StorePrefix, _ head: UnsafeRawBufferPointer, _ body: Chunk?, _ key: StoreKey,
        signedWith signingKey: [UInt8]?
    ) {
        guard prefix.proves(head, body, key, signedWith: signingKey) else { return nil }
        var reader = ByteReader(head)
        switch prefix.kind {
        case .response:
            guard var response = StoredResponse(&reader), let source = AnswerSource(&reader), reader.isAtEnd,
                response.isUsable
            else { return nil }
            let body = body ?? Chunk(copying: UnsafeRawBufferPointer(start: nil, count: 0))
            guard case .whole(let length) = response.extent, length == Int64(body.count) else { return nil }
            (response.source, response.id) = (source, StoredResponse.newID())
            self = .response(response, body)
        case .index:
            guard body == nil, let salt = reader.number(UInt64.self), let count = reader.number(UInt32.self) else {
                return nil
            }
            var names: [String] = []
            for _ in 0..<count {
                guard let name = reader.text() else { return nil }
                names.append(name)
            }
            guard reader.isAtEnd else { return nil }
            self = .index(StoreIndex(names: names, salt: salt))
        }
    }
}

extension StoredResponse {
    /// Whether the parts of a response from an external cache are such as a server may have sent: a digest without a
    /// key does not prove that this library has written it.
    fileprivate var isUsable: Bool {
        guard status.code >= 200, ![206, 304].contains(status.code), url == key.text else { return false }
        var isUsable = true
        headers.forEachRaw { name, value in
            let isName = FieldName(String(decoding: name, as: UTF8.self)).isValid
            // RFC 9110 §5.5.
            if !isName || value.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }) { isUsable = false }
        }
        return isUsable
    }
}
