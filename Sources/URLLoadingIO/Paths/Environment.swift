// The environment of the process.

import URLLoadingCSystem

package enum Environment {
    /// The value of a variable; `nil` if it is not there. Not while another thread writes: getenv(3).
    package static func value(_ name: String) -> String? { csys_environment(name).map { String(cString: $0) } }
}
