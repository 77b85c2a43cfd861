// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoadingCSystem

/// Tells a failure for lack of descriptors apart: the C library often reports that something is missing instead.
enum FreeDescriptor {
    /// Why no descriptor can be opened now: `EMFILE` or `ENFILE`; `nil` if one can.
    static var refusal: Int32? {
        let probe = csys_socket(AF_INET)
        guard probe < 0 else {
            _ = csys_close(probe)
            return nil
        }
        return [EMFILE, ENFILE].contains(-probe) ? -probe : nil
    }
}
