// SPDX-License-Identifier: Apache-2.0

// The rules for the fields of requests (RFC 9113 §8.2, §8.3).

extension HTTP2Fields {
    /// The reason why these fields are not a valid request; `nil` if they are.
    var wrongInRequest: String? {
        if let wrong = wrongInFields { return wrong }
        let pseudo = fields.prefix { $0.isPseudo }.map(\.nameText)
        if let late = fields.dropFirst(pseudo.count).first(where: \.isPseudo) { return "\(late.nameText) after fields" }
        if Set(pseudo).count != pseudo.count { return "a pseudo-field comes twice" }
        let known: Set = [":method", ":scheme", ":path", ":authority", ":protocol"]
        if let unknown = pseudo.first(where: { !known.contains($0) }) { return "\(unknown) in a request" }
        // §8.5
        let isConnect = self[":method"] == "CONNECT" && self[":protocol"] == nil
        let needed = isConnect ? [":method", ":authority"] : [":method", ":scheme", ":path"]
        if let missing = needed.first(where: { !pseudo.contains($0) }) { return "no \(missing)" }
        if isConnect, pseudo.count != 2 { return "CONNECT with \(pseudo)" }
        if self[":path"] == "" { return "an empty :path" }
        if let host = self["host"], let authority = self[":authority"], host != authority {
            return "host \(host), but :authority \(authority)"
        }
        return nil
    }

    /// Returns the reason why these fields cannot open a tunnel (RFC 8441 §3 to §5); `nil` if they can.
    func wrongInTunnel(isAllowed: Bool, endsStream: Bool) -> String? {
        if !isAllowed { return ":protocol without SETTINGS_ENABLE_CONNECT_PROTOCOL" }
        if self[":method"] != "CONNECT" { return ":protocol with \(self[":method"] ?? "")" }
        if self[":authority"] == nil { return "no :authority" }
        if self["sec-websocket-key"] != nil { return "sec-websocket-key in HTTP/2" }
        return endsStream ? "a tunnel that ends at once" : nil
    }

    /// The reason why these fields are not valid trailers; `nil` if they are.
    var wrongInTrailers: String? {
        if let pseudo = fields.first(where: \.isPseudo) { return "\(pseudo.nameText) in trailers" }
        return wrongInFields
    }

    private var wrongInFields: String? {
        for field in fields {
            let name = field.nameText
            let token = field.isPseudo ? field.name.dropFirst() : field.name[...]
            if token.isEmpty || !token.allSatisfy(\.isOfLowercaseToken) { return "the name \(name.debugDescription)" }
            if field.value.contains(where: { $0 == 0 || $0 == 10 || $0 == 13 }) { return "the value of \(name)" }
            let isBlank: (UInt8?) -> Bool = { $0 == 0x20 || $0 == 0x09 }
            if isBlank(field.value.first) || isBlank(field.value.last) { return "blanks around the value of \(name)" }
            // §8.2.2
            if ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"].contains(name) {
                return "\(name) in HTTP/2"
            }
            if name == "te", !field.value.elementsEqual("trailers".utf8) { return "te with more than trailers" }
        }
        return nil
    }
}

extension HTTP2Fields.Field {
    fileprivate var isPseudo: Bool { name.first == UInt8(ascii: ":") }
    fileprivate var nameText: String { String(decoding: name, as: UTF8.self) }
}

extension UInt8 {
    /// Whether the byte is a token character (RFC 9110 §5.6.2) other than a capital letter.
    fileprivate var isOfLowercaseToken: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }
}
