// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingCSystem

/// A library that is looked for at its first use, and kept for the life of the process. That it is missing is
/// remembered only if the system could look for it: without a free descriptor it finds no file.
package final class FoundLibrary<Library: Sendable>: Sendable {
    package enum Answer: Sendable {
        case found(Library)
        case missing
        /// No descriptor was free. The next use looks again.
        case unknown
    }

    private let known = Lock<Answer>(.unknown)
    private let load: @Sendable () -> Library?

    /// - Parameter load: `nil` if the library is not installed.
    package init(_ load: @escaping @Sendable () -> Library?) { self.load = load }

    /// What is known of the library. The first use loads it, which blocks.
    package var answer: Answer {
        let before = known.withLock { $0 }
        guard case .unknown = before else { return before }
        // Without the lock: its initialisers are other code. Of first uses at the same time each one loads it, for the
        // system the same library; the first answer stays.
        let new: Answer =
            if let library = load() { .found(library) } else { FreeDescriptor.refusal == nil ? .missing : .unknown }
        return known.withLock { known in
            if case .unknown = known { known = new }
            return known
        }
    }

    /// `nil` where the library is not installed, or cannot be looked for now.
    package var library: Library? { if case .found(let library) = answer { library } else { nil } }
}
