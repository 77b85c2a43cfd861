// SPDX-License-Identifier: Apache-2.0

extension ResumeToken {
    /// The path of the partial file; `nil` if the bytes are in the token.
    package var heldPath: String? { record.path }
}
