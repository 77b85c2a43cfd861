// SPDX-License-Identifier: Apache-2.0

/// A command line that is not valid, with a sentence that tells the user why.
struct UsageError: Error, Hashable {
    let words: String
    init(_ words: String) { self.words = words }
}
