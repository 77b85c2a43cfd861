// SPDX-License-Identifier: Apache-2.0

import URLLoadingCIDN2

enum DomainNames {
    /// Maps a name of valid UTF-8 without NUL to ASCII by UTS 46, non-transitional (so that `ß` stays itself), with the
    /// checks of IDNA 2008; `nil` if the name is not allowed.
    ///
    /// The library's own STD3 rules are off, because they refuse the underscore; the caller checks the result.
    static func toASCII(_ name: [UInt8]) -> [UInt8]? {
        var result: UnsafeMutablePointer<UInt8>?
        let flags = CInt(IDN2_NFC_INPUT.rawValue | IDN2_NONTRANSITIONAL.rawValue)
        guard idn2_lookup_u8(name + [0], &result, flags) == CInt(IDN2_OK.rawValue), let result else { return nil }
        defer { idn2_free(result) }
        var count = 0
        while result[count] != 0 { count += 1 }
        return Array(UnsafeBufferPointer(start: result, count: count))
    }
}
