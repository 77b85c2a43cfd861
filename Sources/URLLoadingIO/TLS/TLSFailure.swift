// Why a secure connection was not made or ended, by the check that failed.

package struct TLSFailure: Error, Sendable {
    package enum Kind: Sendable, Equatable {
        case placeholder
    }
    package let kind: Kind
    /// OpenSSL's own words, for the log; never shown without the kind.
    package let detail: String
}
