// SPDX-License-Identifier: Apache-2.0

/// What an external cache has done for a session.
package struct StoreCounts: Codable, Sendable, Equatable {
    /// Look-ups that found a record for the request, and that found none.
    package var found = 0
    package var missing = 0
    /// Records that are damaged, or of something else; their look-ups have found none.
    package var damaged = 0
    /// Changes that were made: responses stored, and URLs removed.
    package var stored = 0
    package var removed = 0
    /// Responses that were not stored because they were too large, or because the session holds as much as it may.
    package var left = 0
    /// Calls that were too late, and that failed.
    package var late = 0
    package var failed = 0
    /// Calls that were not made, because earlier ones failed or are still running.
    package var skipped = 0
}
