// Under which names anybody may register one: the public suffix list, as libpsl has it. A domain that is such a suffix
// belongs to nobody, and no cookie may be for all of it (security 21).

import URLLoadingCPSL

package enum PublicSuffixes {
    /// The newer of the system's list and the one built in, opened once; it is only read. `nil` without either.
    nonisolated(unsafe) private static let list: OpaquePointer? = psl_latest(nil)
    /// ICANN's names and those of companies that give out names below theirs.
    private static let kinds = Int32(PSL_TYPE_ANY)

    /// Whether a name in normal form, without a dot at its end, is one. Names that the list does not know are by their last
    /// label (the list's `*` rule).
    package static func contains(_ name: String) -> Bool {
        guard let list else { return !name.utf8.contains(UInt8(ascii: ".")) }
        return psl_is_public_suffix2(list, name, kinds) != 0
    }

    /// The suffix and the label before it: what one owner has; the name itself if it is a suffix or a single label.
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
