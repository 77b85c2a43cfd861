// SPDX-License-Identifier: Apache-2.0

#if DEBUG
import URLLoadingCSystem

/// Writes lines for the program's developer to the standard error, in debug builds only.
package enum DebugNote {
    package static func write(_ line: String) { csys_write_error("URLLoading: \(line)\n") }
}
#endif
