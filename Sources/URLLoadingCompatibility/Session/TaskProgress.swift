// SPDX-License-Identifier: Apache-2.0

// The `Progress` of a task. Foundation on Linux adds the fractions of a parent's children with products that end the
// process when they overflow. A fraction from 0 to 1 never overflows them. A fraction far above 1 may: 1 MB where the
// program expected 1 KB, beside two downloads of 30 MB. So this class gives Foundation fractions from 0 to 1 only, and
// shows the actual counts itself.

import Foundation
import Synchronization
import URLLoadingIO

final class TaskProgress: Foundation.Progress, @unchecked Sendable {
    // Unchecked, as any subclass of `Progress` must be; its only property is a lock.
    private let counts = Lock<(total: Int64, completed: Int64)>((NSURLSessionTransferSizeUnknown, 0))
    /// Held while counts change, because a change also changes the parents, and two tasks with one parent run on two
    /// threads.
    private static let changes = Lock(())

    override var totalUnitCount: Int64 {
        get { counts.withLock { $0.total } }
        set { change { $0.total = newValue } }
    }

    override var completedUnitCount: Int64 {
        get { counts.withLock { $0.completed } }
        set { change { $0.completed = newValue } }
    }

    /// Sets both counts, with no state in between.
    func set(completed: Int64, of total: Int64) { change { $0 = (total, completed) } }

    private func change(_ edit: (inout (total: Int64, completed: Int64)) -> Void) {
        Self.changes.withLock { _ in
            let (total, completed) = counts.withLock { counts in
                edit(&counts)
                return counts
            }
            guard total > 0, completed >= 0, completed <= total else {
                // Nothing is known: the order keeps the fraction at or above 0.
                super.completedUnitCount = 0
                super.totalUnitCount = NSURLSessionTransferSizeUnknown
                return
            }
            if completed < super.completedUnitCount { super.completedUnitCount = completed }
            super.totalUnitCount = total
            super.completedUnitCount = completed
        }
    }
}
