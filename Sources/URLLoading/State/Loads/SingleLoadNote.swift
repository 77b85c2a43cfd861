// SPDX-License-Identifier: Apache-2.0

#if DEBUG
import Synchronization
import URLLoadingIO

/// Notes once that a program makes a session for each request.
enum SingleLoadNote {
    private static let count = Lock(0)
    private static let limit = 100

    /// - Parameter loads: the number of loads of a session that has ended.
    static func ended(loads: Int) {
        guard loads == 1,
            count.withLock({ count in
                count += 1; return count == limit
            })
        else { return }
        DebugNote.write(
            "\(limit) sessions have ended after one load each: keep one session, so that its loads share connections, "
                + "the cache and cookies")
    }
}
#endif
