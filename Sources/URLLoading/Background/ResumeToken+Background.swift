extension ResumeToken {
    /// The path of the file with what was loaded so far; `nil` if the bytes are in the token.
    package var heldPath: String? { record.path }
}
