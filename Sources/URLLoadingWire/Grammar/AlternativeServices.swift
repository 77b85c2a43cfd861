// SPDX-License-Identifier: Apache-2.0

/// The field Alt-Svc (RFC 7838 §3): where else an origin offers its resources.
package enum AlternativeServices: Sendable, Equatable {
    /// The origin revokes what it has stated before.
    case clear
    /// In the server's order of preference, with those of unknown protocols.
    case services([AlternativeService])

    /// The number of services that are read of one response.
    package static let most = 32

    /// Reads the field of a response; `nil` if there is none, or if it is malformed.
    package init?(_ headers: Headers) {
        let values = headers.values(of: "Alt-Svc")
        guard !values.isEmpty else { return nil }
        self.init(values.joined(separator: ","))
    }

    /// Reads the value of the field.
    package init?(_ text: String) {
        var scanner = ParameterScanner(text)
        var services: [AlternativeService] = []
        while true {
            scanner.skipBlanks()
            if scanner.isAtEnd { break }
            // Empty members of a list are allowed (RFC 9110 §5.6.1).
            if scanner.take(",") { continue }
            guard let name = scanner.token() else { return nil }
            guard scanner.take("=") else {
                scanner.skipBlanks()
                guard name == "clear", services.isEmpty, scanner.isAtEnd else { return nil }
                self = .clear
                return
            }
            guard let service = AlternativeService(name, &scanner) else { return nil }
            if services.count < Self.most { services.append(service) }
            guard scanner.isAtEnd || scanner.take(",") else { return nil }
        }
        guard !services.isEmpty else { return nil }
        self = .services(services)
    }
}

/// One service of an Alt-Svc field.
package struct AlternativeService: Sendable, Hashable {
    /// The ALPN name (RFC 7301): `h3`.
    package let protocolID: String
    /// `nil` for the origin's own host.
    package let host: Origin.Host?
    package let port: UInt16
    /// How long the service may be used, in seconds; a day unless the server says otherwise.
    package var maxAge: Int64 = 86_400
    /// Whether the service remains after a change of the network.
    package var persists = false

    package init(_ protocolID: String, host: Origin.Host? = nil, port: UInt16) {
        (self.protocolID, self.host, self.port) = (protocolID, host, port)
    }

    /// Reads what follows the name of the protocol and `=`, up to the next member of the list.
    fileprivate init?(_ name: String, _ scanner: inout ParameterScanner) {
        guard let name = Self.decoded(name), let (host, port) = scanner.tokenOrQuoted().flatMap(Self.place) else {
            return nil
        }
        self.init(name, host: host, port: port)
        scanner.skipBlanks()
        while scanner.take(";") {
            scanner.skipBlanks()
            guard let name = scanner.token(), scanner.take("="), let value = scanner.tokenOrQuoted() else { return nil }
            switch name {
            case "ma":
                guard value.utf8.allSatisfy(\.isDigit) else { return nil }
                maxAge = Int64(value) ?? .max
            case "persist": persists = value == "1"
            default: break
            }
            scanner.skipBlanks()
        }
    }

    package func isSamePlace(as other: Self) -> Bool { host == other.host && port == other.port }

    /// Decodes the name of a protocol: bytes that are not of a token are percent-encoded.
    private static func decoded(_ name: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(name.utf8)[...]
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue else { return nil }
                byte = high << 4 | low
            }
            bytes.append(byte)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Reads `[ uri-host ] ":" port`.
    private static func place(_ text: String) -> (Origin.Host?, UInt16)? {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy(\.isDigit), let port = UInt16(digits), port > 0 else { return nil }
        guard colon > text.startIndex else { return (nil, port) }
        return (try? Origin.Host(String(text[..<colon]))).map { ($0, port) }
    }
}
