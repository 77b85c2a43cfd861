// SPDX-License-Identifier: Apache-2.0

// The environment of the process.

import URLLoadingCSystem

package enum Environment {
    /// Returns the value of a variable; `nil` if it is not set. Must not run while another thread modifies the
    /// environment: getenv(3).
    package static func value(_ name: String) -> String? { csys_environment(name).map { String(cString: $0) } }
}
