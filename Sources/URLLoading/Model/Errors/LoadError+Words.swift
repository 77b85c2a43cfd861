// SPDX-License-Identifier: Apache-2.0

// The words of an error's description after its reason, phase and URL.

import FoundationEssentials

extension LoadError {
    /// The detail of `connectionLost` where the server closed the connection before the first byte of an answer.
    package static let closedWithoutAnswer = "closed without an answer"

    /// What happened: the detail as a clause, or what the reason and the phase tell without a detail.
    var explanation: String? {
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

    /// The error of the caller's own code, on one line.
    var cause: String? {
        switch reason {
        case .decisionFailed, .handlerFailed, .requestBodyFailed: break
        default: return nil
        }
        guard let underlying else { return nil }
        let line = "\(underlying)".split(whereSeparator: \.isNewline).joined(separator: " ")
        return String(line.prefix(Self.causeLength))
    }
}
