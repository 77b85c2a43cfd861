// SPDX-License-Identifier: Apache-2.0

/// A command line that cannot be understood. The words are a sentence for its author.
struct UsageError: Error, Hashable {
    let words: String
    init(_ words: String) { self.words = words }
}
