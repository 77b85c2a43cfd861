// SPDX-License-Identifier: Apache-2.0

// The public suffix list, as provided by libpsl: the names below which the public can register names. No cookie may be
// set for a whole public suffix.

import URLLoadingCPSL

package enum PublicSuffixes {
    /// The newer of the system's list and libpsl's built-in one, opened once and only read; `nil` without either.
    nonisolated(unsafe) private static let list: OpaquePointer? = psl_latest(nil)
    /// Includes ICANN's names and those of companies that assign names below theirs.
    private static let kinds = Int32(PSL_TYPE_ANY)

    /// Returns whether a name in normal form, without a trailing dot, is a public suffix. For names that the list does
    /// not contain, the last label is the suffix (the list's `*` rule).
    package static func contains(_ name: String) -> Bool {
        guard let list else { return !name.utf8.contains(UInt8(ascii: ".")) }
        return psl_is_public_suffix2(list, name, kinds) != 0
    }

    /// Returns the public suffix and the label before it, the part that one owner has registered; the name itself if it
    /// is a suffix or a single label.
    ///
    /// ```swift
    /// PublicSuffixes.registrableDomain(of: "a.b.example.co.uk")   // "example.co.uk"
    /// ```
    package static func registrableDomain(of name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: ".")), let list else { return name }
        return name.withCString { start in
            psl_registrable_domain(list, start).map { String(cString: $0) } ?? name
        }
    }
}
