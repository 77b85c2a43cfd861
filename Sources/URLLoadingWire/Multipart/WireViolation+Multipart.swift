// SPDX-License-Identifier: Apache-2.0

extension WireViolation.Code {
    /// A multipart media type without a boundary, or with an illegal one (RFC 2046 §5.1.1).
    public static let malformedBoundary = WireViolation.Code(rawValue: "malformedBoundary")
    /// The preamble of a multipart body exceeds the limit.
    public static let multipartPreambleTooLarge = WireViolation.Code(rawValue: "multipartPreambleTooLarge")
    /// The epilogue of a multipart body exceeds the limit.
    public static let multipartEpilogueTooLarge = WireViolation.Code(rawValue: "multipartEpilogueTooLarge")
    /// A multipart body has more parts than the limit.
    public static let tooManyParts = WireViolation.Code(rawValue: "tooManyParts")
    /// A multipart body without its closing delimiter (RFC 2046 §5.1.1).
    public static let truncatedMultipart = WireViolation.Code(rawValue: "truncatedMultipart")
}
