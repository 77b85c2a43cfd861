// SPDX-License-Identifier: Apache-2.0

// The result of a transfer, as it is stored and delivered.

package import FoundationEssentials
import URLLoadingWire

/// A response without its body.
package struct TransferResponse: Codable, Sendable, Equatable {
    package var url: String
    package var status: Int?
    package var major: UInt8 = 1
    package var minor: UInt8 = 1
    package var fields: [[String]] = []
    package var expectedLength: Int64?

    package init(_ response: Response) {
        url = response.url.absoluteString
        expectedLength = response.expectedLength
        guard let head = response.http else { return }
        status = head.status.code
        (major, minor) = (head.version.major, head.version.minor)
        fields = head.headers.map { [$0.name.description, $0.value] }
    }

    /// The response as a value of the API; `nil` if its URL is invalid.
    package var response: Response? {
        guard let url = URL(string: url) else { return nil }
        var headers = Headers()
        for field in fields where field.count == 2 { headers.append(FieldName(field[0]), field[1]) }
        let head = status.flatMap { Status($0) }.map {
            HTTPHead(status: $0, version: HTTPVersion(major: major, minor: minor), headers: headers)
        }
        return Response(url: url, expectedLength: expectedLength, http: head)
    }
}

/// The serialised form of a ``LoadError``.
package struct TransferError: Codable, Sendable, Equatable {
    package var reason: String
    package var code: Int
    package var phase: String
    package var party: String
    package var url: String?
    package var detail: String?
    /// See `LoadError.Kind`; nil in records of earlier versions.
    package var kind: String?
    /// The resume data of a download (``ResumeToken/data``).
    package var resumption: Data?
    /// The response that was refused, or the response to an upload whose body was lost.
    package var response: TransferResponse?

    package init(_ error: LoadError, response: TransferResponse? = nil) {
        self.response = response ?? error.response.map { TransferResponse($0) }
        (reason, code) = (error.reason.name, error.reason.code)
        (phase, party) = (error.phase.rawValue, error.party.rawValue)
        url = error.url?.absoluteString
        (detail, kind) = (error.detail, error.kind?.rawValue)
        resumption = error.resumeToken?.data
    }

    package var loadError: LoadError {
        LoadError(
            LoadError.Reason(reason, code), phase: LoadError.Phase(rawValue: phase) ?? .waiting,
            party: LoadError.Party(rawValue: party) ?? .system, url: url.flatMap { URL(string: $0) }, detail: detail,
            underlying: response?.response.map { RefusedResponse(response: $0) },
            resumeToken: resumption.flatMap { try? ResumeToken($0) },
            kind: kind.flatMap { LoadError.Kind(rawValue: $0) })
    }
}

/// The result of a transfer.
package enum TransferOutcome: Codable, Sendable, Equatable {
    /// A download is complete; its file is at the path.
    case file(path: String, size: Int64, response: TransferResponse)
    /// An upload was answered; the response's body is in a file of the agent's.
    case answer(path: String, size: Int64, response: TransferResponse)
    case failed(TransferError)

    /// The same without the fields of its response, which may be as large as the settings allow.
    package var withoutFields: TransferOutcome {
        func short(_ response: TransferResponse) -> TransferResponse {
            var response = response
            response.fields = []
            return response
        }
        switch self {
        case .file(let path, let size, let response):
            return .file(path: path, size: size, response: short(response))
        case .answer(let path, let size, let response):
            return .answer(path: path, size: size, response: short(response))
        case .failed(var error):
            error.response = error.response.map(short)
            return .failed(error)
        }
    }
}

/// The state of one transfer, as listings and events show it.
package struct TransferRecord: Codable, Sendable, Equatable {
    package enum State: String, Codable, Sendable {
        case queued, waiting, running, paused, parked, placing, finished
    }
    package var id: String
    package var number: Int64
    package var kind: TransferOrder.Kind
    package var shownURL: String
    package var method: String
    package var label: String
    package var userData: Data
    package var state: State
    /// The reason for waiting, in words for people.
    package var reason: String?
    /// The end of the wait, in nanoseconds since 1970.
    package var until: Int64?
    package var received: Int64
    package var expectedToReceive: Int64?
    package var sent: Int64
    package var expectedToSend: Int64?
    package var attempts: Int
    package var destination: String?
    package var created: Int64
    package var outcome: TransferOutcome?
    /// True if the program's cookie store gets no cookies of the response.
    package var ignoresCookies: Bool?

    package init(id: String, number: Int64, order: TransferOrder, state: State) {
        (self.id, self.number, self.state) = (id, number, state)
        (kind, shownURL, method) = (order.kind, order.shownURL, order.method)
        (label, userData) = (order.label, order.userData)
        (received, sent, attempts) = (0, 0, 0)
        (destination, created) = (order.destination, order.created)
        ignoresCookies = order.overrides.handlesCookies ? nil : true
    }
}

/// Encodes values as JSON with sorted keys, as they are sent and stored.
package enum TransferCoding {
    package static func encode(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings, numbers and data only, so the encoding cannot fail.
        return (try? encoder.encode(value)).map { [UInt8]($0) } ?? []
    }

    /// Decodes a value; `nil` if the bytes do not encode one.
    package static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) -> Value? {
        try? JSONDecoder().decode(type, from: Data(bytes))
    }
}
