extension WireViolation.Code {
    /// A multipart type without a boundary, or with one that cannot be (RFC 2046 5.1.1).
    public static let malformedBoundary = WireViolation.Code(rawValue: "malformedBoundary")
    /// More before the first part of a multipart body than the limit.
    public static let multipartPreambleTooLarge = WireViolation.Code(rawValue: "multipartPreambleTooLarge")
    /// More after the last part of a multipart body than the limit.
    public static let multipartEpilogueTooLarge = WireViolation.Code(rawValue: "multipartEpilogueTooLarge")
    /// More parts in a multipart body than the limit.
    public static let tooManyParts = WireViolation.Code(rawValue: "tooManyParts")
    /// A multipart body without its closing delimiter (RFC 2046 5.1.1).
    public static let truncatedMultipart = WireViolation.Code(rawValue: "truncatedMultipart")
}
