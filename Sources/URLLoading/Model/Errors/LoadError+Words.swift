// SPDX-License-Identifier: Apache-2.0

// The words of an error's description after its reason, phase and URL.

import FoundationEssentials
import Glibc
import URLLoadingIO

/// An underlying error of the library's own. It carries values, which the detail of the error has in words unless they
/// are secrets.
protocol ErrorCarrier: Error {
    /// The error beneath it.
    var cause: (any Error)? { get }
    /// The place of the failure, with which the detail of the error begins, and the rest of the detail; `nil` if the
    /// place is that of the URL.
    var place: (name: String, detail: String?)? { get }
}

extension ErrorCarrier {
    var cause: (any Error)? { nil }
    var place: (name: String, detail: String?)? { nil }
}

extension LoadError {
    /// The server closed the connection before the first byte of an answer.
    package static func closedWithoutAnswer(_ phase: Phase) -> LoadError {
        LoadError(
            .connectionLost, phase: phase, party: .remote, detail: "closed without an answer", kind: .unanswered)
    }

    /// What happened, and where.
    var explanation: String? {
        guard let place = (underlying as? any ErrorCarrier)?.place else { return sentence(detail) }
        return sentence(place.detail).map { "\(place.name): \($0)" } ?? detail
    }

    /// What happened: the detail as a clause, or what the reason and the phase tell without a detail.
    private func sentence(_ detail: String?) -> String? {
        let host = url?.hostInNormalForm
        return switch reason {
        case .hostNotFound where detail == nil || detail == host: host.map { "the host name \($0) does not exist" }
        case .connectionLost where detail == nil:
            switch phase {
            case .waiting: "the connection was closed before the response"
            case .receiving: "the connection was closed before the end of the response"
            case .sending: "the connection was closed before the request was sent"
            default: "the connection was closed"
            }
        case .connectionRefused where detail == nil: "no program listens on this port"
        case .sessionInvalidated where detail == nil: "the session was invalidated; create a new one"
        case .bodyUnavailable where detail == nil:
            "the body was read before, or its load has ended; read it once, inside the closure that is given it"
        case .badURL, .unsupportedScheme: detail.map { $0 + cureOfURL }
        default: detail
        }
    }

    /// The clause about a URL without a scheme or a host.
    private var cureOfURL: String {
        guard let url else { return "" }
        if url.scheme == nil { return "; the URL has no scheme: write it as https://example.org/" }
        let needsHost = ["http", "https", "ws", "wss", "ftp", "ftps"].contains(url.scheme?.lowercased())
        return needsHost && (url.host() ?? "").isEmpty ? "; the URL has no host: write it as https://example.org/" : ""
    }

    /// The clause about the limit that a response exceeds, with the setting that raises it.
    private var limitWords: String? {
        guard party == .remote else { return nil }
        // Heads of responses end before a body is received; those of parts are in it.
        let setting: String? =
            switch reason {
            case .headTooLarge: phase == .receiving ? "limits.partHeadSize" : "limits.headSize"
            case .tooManyFields:
                phase == .receiving ? "limits.fieldCount (of a part: limits.partFieldCount)" : "limits.fieldCount"
            case .chunkExtensionsTooLarge: "limits.chunkExtensionSize"
            case .trailersTooLarge: "limits.trailerSize"
            case .tooManyInformational: "limits.informationalCount"
            case .tooManyParts: "limits.partCount"
            case .eventLineTooLong: "limits.eventLineSize"
            case .eventTooLarge: "limits.eventSize"
            default: nil
            }
        return setting.map { "\($0) allows more" }
    }

    /// The detail, and which settings would help.
    var explanationWithRemedies: String? {
        let parts = [explanation, limitWords, remedyWords].compactMap(\.self)
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    /// The longest part of an underlying error that is shown, in characters.
    private static let causeLength = 200

    /// The underlying error on one line: of the caller's own code, or of the system. `nil` if the sentence before it
    /// says the same.
    func cause(beneath sentence: String) -> String? {
        // A decoder's error may quote the body.
        guard reason != .undecodableBody else { return nil }
        var beneath = underlying
        while let carrier = beneath as? any ErrorCarrier { beneath = carrier.cause }
        guard let error = beneath else { return nil }
        let system = Self.systemWords(error)
        let words = system ?? "\(error)".split(whereSeparator: \.isNewline).joined(separator: " ")
        guard !words.isEmpty, !sentence.contains(words) else { return nil }
        let path = system == nil ? nil : (error as? CocoaError)?.filePath
        return String((path.map { "\($0): \(words)" } ?? words).prefix(Self.causeLength))
    }

    /// The system's words for an error of Foundation's, which describes itself as a structure; `nil` if the system did
    /// not cause it.
    package static func systemWords(_ error: any Error) -> String? {
        let cause = (error as? CocoaError)?.underlying ?? error
        return (cause as? POSIXError).map { SystemError.words($0.code.rawValue) }
    }
}
