// SPDX-License-Identifier: Apache-2.0

/// The type-erased form of `Inquiry` that the mailbox stores.
protocol Question: AnyObject, Sendable {
    /// Puts the question to the delegate. Called on the lane.
    func put()
    /// Withdraws the question: the load has ended and does not wait for the answer.
    func withdraw()
    /// Whether the question is put only after the whole body was delivered.
    var comesLast: Bool { get }
}
