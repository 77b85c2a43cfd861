// SPDX-License-Identifier: Apache-2.0

package enum StopReason: UInt8, Sendable {
    case cancelled = 1
    case invalidated
    /// Nothing was received from the peer for the idle limit.
    case idle
    /// The work as a whole exceeded its time limit.
    case deadline
}
