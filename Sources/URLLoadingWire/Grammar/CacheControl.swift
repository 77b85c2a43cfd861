// SPDX-License-Identifier: Apache-2.0

/// The Cache-Control directives of a request or a response (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// ```swift
/// let control = CacheControl(headers)
/// control.maxAge                    // 60
/// control.flags.contains(.noStore)  // false
/// ```
///
/// Lenient where that is safe: names are case-insensitive, unknown directives are ignored, a number may be quoted, the
/// first of repeated directives counts, and a number too large is 2^31 (RFC 9111 §1.2.2). An invalid number makes a
/// response stale at once (RFC 9111 §4.2.1): it counts as 0, or for directives that permit more, as absent.
package struct CacheControl: Sendable, Hashable {
    /// Directives without a number.
    package struct Flags: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }
        package static let noStore = Flags(rawValue: 1)
        /// `no-cache` without field names; see ``CacheControl/noCacheFields``.
        package static let noCache = Flags(rawValue: 2)
        package static let mustRevalidate = Flags(rawValue: 4)
        package static let mustUnderstand = Flags(rawValue: 8)
        package static let `public` = Flags(rawValue: 16)
        package static let `private` = Flags(rawValue: 32)
        package static let immutable = Flags(rawValue: 64)
        package static let onlyIfCached = Flags(rawValue: 128)
        package static let noTransform = Flags(rawValue: 256)
        /// `max-stale` without a number.
        package static let anyStale = Flags(rawValue: 512)
        package static let proxyRevalidate = Flags(rawValue: 1024)
    }

    package var flags: Flags = []
    package var maxAge: Int64?
    /// `s-maxage`, which replaces the lifetime in caches that several users share.
    package var sharedMaxAge: Int64?
    package var maxStale: Int64?
    package var minFresh: Int64?
    package var staleWhileRevalidate: Int64?
    package var staleIfError: Int64?
    /// The field names of `no-cache="…"`, which must not be reused without revalidation (RFC 9111 §5.2.2.4).
    package var noCacheFields: [String] = []
    /// True if the message had a Cache-Control field.
    package private(set) var isPresent = false

    /// The value for numbers of seconds that are larger.
    package static let maximumSeconds: Int64 = 1 << 31

    /// Creates an instance without directives.
    package init() {}

    /// Reads all Cache-Control fields of a message.
    package init(_ headers: Headers) {
        self = headers.contains(.cacheControl) ? Self.read(headers) : Self()
    }

    @inline(never)
    private static func read(_ headers: Headers) -> CacheControl {
        var control = CacheControl()
        control.isPresent = true
        for index in headers.entries.indices where headers.has(.cacheControl, at: index) {
            headers.withField(at: index) { control.read($1) }
        }
        return control
    }

    /// The directives as a cache that several users share reads them: `s-maxage` replaces `max-age`, and implies like
    /// `proxy-revalidate` that a stale response is validated (RFC 9111 §5.2.2.8, §5.2.2.10).
    package var inSharedCache: CacheControl {
        var control = self
        if let sharedMaxAge { control.maxAge = sharedMaxAge }
        if sharedMaxAge != nil || flags.contains(.proxyRevalidate) { control.flags.insert(.mustRevalidate) }
        return control
    }

    /// Parses a number of seconds, as in Age too; `nil` unless it consists of digits.
    package static func seconds(_ text: some Collection<UInt8>) -> Int64? {
        guard !text.isEmpty else { return nil }
        var number: Int64 = 0
        for byte in text {
            guard byte.isDigit else { return nil }
            number = min(number * 10 + Int64(byte &- 0x30), maximumSeconds)
        }
        return number
    }

    private mutating func read(_ value: UnsafeRawBufferPointer) {
        var position = 0
        while position < value.count {
            let start = position
            // A comma inside quotes does not separate directives.
            var equals: Int?
            var isQuoted = false
            while position < value.count {
                let byte = value[position]
                if isQuoted {
                    if byte == UInt8(ascii: "\\") {
                        position += 1
                    } else if byte == UInt8(ascii: "\"") {
                        isQuoted = false
                    }
                } else if byte == UInt8(ascii: "\"") {
                    isQuoted = equals != nil
                } else if byte == UInt8(ascii: ",") {
                    break
                } else if byte == UInt8(ascii: "="), equals == nil {
                    equals = position
                }
                position += 1
            }
            let end = min(position, value.count)
            let name = value.trimmed(start..<(equals ?? end))
            if !name.isEmpty { take(value, name, equals.map { $0 + 1..<end }) }
            position += 1
        }
    }

    private mutating func take(_ value: UnsafeRawBufferPointer, _ name: Range<Int>, _ argument: Range<Int>?) {
        func number(_ present: Int64?, otherwise: Int64?) -> Int64? {
            present ?? Self.number(value, argument) ?? otherwise
        }
        switch value[name.lowerBound].lowered {
        case UInt8(ascii: "m"):
            if value.matches("max-age", in: name) {
                maxAge = number(maxAge, otherwise: 0)
            } else if value.matches("max-stale", in: name) {
                takeMaxStale(value, argument)
            } else if value.matches("min-fresh", in: name) {
                minFresh = number(minFresh, otherwise: nil)
            } else if value.matches("must-revalidate", in: name) {
                flags.insert(.mustRevalidate)
            } else if value.matches("must-understand", in: name) {
                flags.insert(.mustUnderstand)
            }
        case UInt8(ascii: "n"):
            if value.matches("no-store", in: name) {
                flags.insert(.noStore)
            } else if value.matches("no-cache", in: name) {
                takeNoCache(value, argument)
            } else if value.matches("no-transform", in: name) {
                flags.insert(.noTransform)
            }
        case UInt8(ascii: "p"):
            if value.matches("private", in: name) {
                flags.insert(.private)
            } else if value.matches("public", in: name) {
                flags.insert(.public)
            } else if value.matches("proxy-revalidate", in: name) {
                flags.insert(.proxyRevalidate)
            }
        case UInt8(ascii: "s"):
            if value.matches("stale-while-revalidate", in: name) {
                staleWhileRevalidate = number(staleWhileRevalidate, otherwise: nil)
            } else if value.matches("stale-if-error", in: name) {
                staleIfError = number(staleIfError, otherwise: nil)
            } else if value.matches("s-maxage", in: name) {
                sharedMaxAge = number(sharedMaxAge, otherwise: 0)
            }
        case UInt8(ascii: "i"):
            if value.matches("immutable", in: name) { flags.insert(.immutable) }
        case UInt8(ascii: "o"):
            if value.matches("only-if-cached", in: name) { flags.insert(.onlyIfCached) }
        default: break
        }
    }

    private mutating func takeMaxStale(_ value: UnsafeRawBufferPointer, _ argument: Range<Int>?) {
        if argument == nil { flags.insert(.anyStale) } else { maxStale = maxStale ?? Self.number(value, argument) }
    }

    private mutating func takeNoCache(_ value: UnsafeRawBufferPointer, _ argument: Range<Int>?) {
        guard let argument, !argument.isEmpty else {
            flags.insert(.noCache)
            return
        }
        let names = Self.unquoted(value, argument).split { $0 == UInt8(ascii: ",") || $0.isBlank }
        // `no-cache=""` names no field; the safe reading is that it applies to the whole response.
        if names.isEmpty { flags.insert(.noCache) }
        for name in names where noCacheFields.count < 64 {
            noCacheFields.append(String(decoding: name, as: UTF8.self).lowercased())
        }
    }

    private static func number(_ value: UnsafeRawBufferPointer, _ argument: Range<Int>?) -> Int64? {
        argument.flatMap { seconds(unquoted(value, $0)) }
    }

    /// Returns the text inside the quotes, or all of it. Quoted pairs are not decoded: numbers and names contain none.
    private static func unquoted(_ value: UnsafeRawBufferPointer, _ range: Range<Int>)
        -> UnsafeRawBufferPointer.SubSequence
    {
        var range = range.lowerBound..<max(range.lowerBound, value.trimmed(range).upperBound)
        let quote = UInt8(ascii: "\"")
        if range.count >= 2, value[range.lowerBound] == quote, value[range.upperBound - 1] == quote {
            range = range.lowerBound + 1..<range.upperBound - 1
        }
        return value[range]
    }
}

/// The field names that Vary lists (RFC 9110 §12.5.5).
///
/// ```swift
/// VaryField(headers)?.names   // ["accept-encoding", "accept-language"]
/// ```
package enum VaryField: Sendable, Hashable {
    /// `*`: the response depends on something other than request fields.
    case everything
    /// The names in lower case, each once, in order.
    case names([String])

    /// The largest number of names. A response that depends on more request fields is as good as one that depends on
    /// everything, and is compared field by field with each later request.
    private static let mostNames = 256

    /// Reads all Vary fields of a message; `nil` if there is none, or if they list no names. More than 256 names count
    /// as `*`.
    package init?(_ headers: Headers) {
        guard headers.contains(.vary) else { return nil }
        var names: [String] = []
        var known: Set<String> = []
        var isEverything = false
        for index in headers.entries.indices where headers.has(.vary, at: index) {
            headers.withField(at: index) { _, value in
                forEachListElement(of: value) { range in
                    guard !isEverything else { return }
                    let name = String(decoding: value[range], as: UTF8.self).lowercased()
                    if known.insert(name).inserted { names.append(name) }
                    isEverything = name == "*" || names.count > Self.mostNames
                }
            }
        }
        if isEverything { self = .everything } else if names.isEmpty { return nil } else { self = .names(names) }
    }
}

extension Headers {
    /// The value of Age (RFC 9111 §5.1): the first of several; `nil` if that is not a number.
    package var age: Int64? {
        withValueBytes(of: .age) { value in
            CacheControl.seconds(value[value.trimmed(0..<(value.firstIndex(of: UInt8(ascii: ",")) ?? value.count))])
        } ?? nil
    }

    /// Returns the values of a field in the form in which they are compared (RFC 9111 §4.1): joined, without blanks
    /// around commas; `nil` without such a field.
    package func comparable(_ name: FieldName) -> String? {
        guard contains(name) else { return nil }
        var parts: [String] = []
        for index in entries.indices where has(name, at: index) {
            withField(at: index) { _, value in forEachListElement(of: value) { parts.append(value.text($0)) } }
        }
        return parts.joined(separator: ",")
    }
}
