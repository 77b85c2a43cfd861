// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension LoadHandle {
    /// Returns the error of a timeout with the length of its limit.
    func worded(_ error: LoadError) -> LoadError {
        guard error.detail == nil else { return error }
        let words: String
        switch error.reason {
        case .idleTimeout where idleLimit != .max:
            words = "no data for \(Duration.nanoseconds(idleLimit))"
        case .resourceTimeout where resourceLimit != .max:
            words = "not complete after \(Duration.nanoseconds(resourceLimit))"
        default: return error
        }
        return LoadError(
            error.reason, phase: error.phase, party: error.party, url: error.url, detail: words,
            underlying: error.underlying, resumeToken: error.resumeToken)
    }
}
