// SPDX-License-Identifier: Apache-2.0

// The words of an error's description after its reason, phase and URL.

import FoundationEssentials

extension LoadError {
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
        default: detail
        }
    }

    /// The detail, and which settings would help.
    var explanationWithRemedies: String? {
        let parts = [explanation, remedyWords].compactMap(\.self)
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
