// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension LoadHandle {
    /// Returns the error of a timeout with the length of its limit.
    func worded(_ error: LoadError) -> LoadError {
        guard error.ownDetail == nil else { return error }
        return switch error.reason {
        case .idleTimeout where idleLimit != .max: error.adding("no data for \(Duration.nanoseconds(idleLimit))")
        case .resourceTimeout where resourceLimit != .max:
            error.adding("not complete after \(Duration.nanoseconds(resourceLimit))")
        default: error
        }
    }
}
