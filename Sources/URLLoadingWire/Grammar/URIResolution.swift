// SPDX-License-Identifier: Apache-2.0

/// The separate parts of a reference, for building a new one.
struct URIComponents {
    var scheme: ArraySlice<UInt8>?
    var userinfo: ArraySlice<UInt8>?
    var host: ArraySlice<UInt8>?
    var port: ArraySlice<UInt8>?
    var path: [UInt8]
    var query: ArraySlice<UInt8>?
    var fragment: ArraySlice<UInt8>?

    init(_ reference: URIReference) {
        let (bytes, parts) = (reference.bytes, reference.parts)
        scheme = parts.scheme.map { bytes[$0] }
        userinfo = parts.userinfo.map { bytes[$0] }
        host = parts.host.map { bytes[$0] }
        port = parts.portText.map { bytes[$0] }
        path = Array(bytes[parts.path])
        query = parts.query.map { bytes[$0] }
        fragment = parts.fragment.map { bytes[$0] }
    }

    mutating func takeAuthority(from other: URIComponents) {
        (userinfo, host, port) = (other.userinfo, other.host, other.port)
    }
}

extension URIReference {
    /// Resolves `reference` against the base URI `self` (RFC 3986 §5.2.2). Throws `invalidURL` if `self` has no scheme.
    package func resolve(_ reference: URIReference) throws(WireViolation) -> URIReference {
        guard parts.scheme != nil else { throw .local(.invalidURL, "RFC 3986 5.1") }
        let base = URIComponents(self)
        var target = URIComponents(reference)
        if target.scheme == nil {
            target.scheme = base.scheme
            if target.host == nil {
                target.takeAuthority(from: base)
                if target.path.isEmpty {
                    target.path = base.path
                    target.query = target.query ?? base.query
                    return URIReference(target)
                }
                if target.path.first != UInt8(ascii: "/") { target.path = base.merged(with: target.path) }
            }
        }
        target.path = Self.removingDotSegments(target.path[...])
        return URIReference(target)
    }

    /// Removes dot segments (RFC 3986 §5.2.4).
    package static func removingDotSegments(_ path: ArraySlice<UInt8>) -> [UInt8] {
        var input = path
        var output: [UInt8] = []
        while !input.isEmpty {
            if input.starts(with: "../".utf8) {
                input = input.dropFirst(3)
            } else if input.starts(with: "./".utf8) || input.starts(with: "/./".utf8) {
                input = input.dropFirst(2)
            } else if input.elementsEqual("/.".utf8) {
                output.append(UInt8(ascii: "/"))
                return output
            } else if input.starts(with: "/../".utf8) {
                input = input.dropFirst(3)
                removeLastSegment(&output)
            } else if input.elementsEqual("/..".utf8) {
                removeLastSegment(&output)
                output.append(UInt8(ascii: "/"))
                return output
            } else if input.elementsEqual(".".utf8) || input.elementsEqual("..".utf8) {
                return output
            } else {
                let end = input.dropFirst().firstIndex(of: UInt8(ascii: "/")) ?? input.endIndex
                output += input[..<end]
                input = input[end...]
            }
        }
        return output
    }

    private static func removeLastSegment(_ output: inout [UInt8]) {
        output.removeSubrange((output.lastIndex(of: UInt8(ascii: "/")) ?? 0)...)
    }
}

extension URIComponents {
    /// Merges paths (RFC 3986 §5.2.3).
    func merged(with reference: [UInt8]) -> [UInt8] {
        if host != nil, path.isEmpty { return [UInt8(ascii: "/")] + reference }
        guard let slash = path.lastIndex(of: UInt8(ascii: "/")) else { return reference }
        return path[...slash] + reference
    }
}

extension URIReference {
    /// Composes a reference from parts that were checked before, and records their ranges (RFC 3986 §5.3).
    init(_ components: URIComponents) {
        var bytes: [UInt8] = []
        var parts = URIParts()
        func add(_ part: some Collection<UInt8>) -> Range<Int> {
            bytes += part
            return bytes.count - part.count..<bytes.count
        }
        if let scheme = components.scheme {
            parts.scheme = add(scheme)
            bytes.append(UInt8(ascii: ":"))
        }
        if let host = components.host {
            bytes += "//".utf8
            if let userinfo = components.userinfo {
                parts.userinfo = add(userinfo)
                bytes.append(UInt8(ascii: "@"))
            }
            parts.host = add(host)
            if let port = components.port {
                bytes.append(UInt8(ascii: ":"))
                parts.portText = add(port)
                parts.port = UInt16(String(decoding: port, as: UTF8.self))
            }
        }
        // Removing dot segments can leave a path that reads as an authority (RFC 3986 §4.2, erratum 4547).
        let isAmbiguous = components.host == nil && components.path.starts(with: "//".utf8)
        parts.path = add(isAmbiguous ? Array("/.".utf8) + components.path : components.path)
        if let query = components.query {
            bytes.append(UInt8(ascii: "?"))
            parts.query = add(query)
        }
        if let fragment = components.fragment {
            bytes.append(UInt8(ascii: "#"))
            parts.fragment = add(fragment)
        }
        self.bytes = bytes
        self.parts = parts
    }
}
