// SPDX-License-Identifier: Apache-2.0

import URLLoadingIO

extension ResumeToken {
    /// The path of the partial file; `nil` if the bytes are in the token.
    package var heldPath: String? { record.path }

    /// Copies the beginning of the partial file into another one beside it, which its writer does not know. Blocks.
    /// - Returns: a token for the copy, of the bytes that are good: those that were synchronised, if the file was
    ///   written by another machine.
    /// - Throws: ``LoadError/Reason/invalidResumeToken`` if the file is gone or was changed.
    package func copied() throws(LoadError) -> ResumeToken { try copied(after: SystemBoot.identity) }
}
