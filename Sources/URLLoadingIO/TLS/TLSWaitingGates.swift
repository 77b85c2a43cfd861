// SPDX-License-Identifier: Apache-2.0

// Assigns the gates at which a reader and a writer of one TLS connection wait.
//
// A gate of a slot holds one task. TLS may have to write in order to read (the answer to a KeyUpdate, RFC 8446 §4.6.3),
// so both tasks may need the same gate, and a peer can bring that about. The second task then waits at the other gate,
// and the first one to continue wakes both.

struct TLSWaitingGates {
    enum Side { case reader, writer }

    private var reader: PollSlot.Interest?
    private var writer: PollSlot.Interest?
    private var isDisplaced = false

    /// Returns the gate at which `side`, which needs `interest`, is to wait.
    mutating func wait(_ side: Side, _ interest: PollSlot.Interest) -> PollSlot.Interest {
        let isTaken = (side == .reader ? writer : reader) == interest
        let gate = isTaken ? interest.opposite : interest
        if isTaken { isDisplaced = true }
        set(side, gate)
        return gate
    }

    /// Records that `side` no longer waits. Returns whether the other side must be woken.
    mutating func endWait(_ side: Side) -> Bool {
        set(side, nil)
        defer { isDisplaced = false }
        return isDisplaced
    }

    private mutating func set(_ side: Side, _ gate: PollSlot.Interest?) {
        switch side {
        case .reader: reader = gate
        case .writer: writer = gate
        }
    }
}

extension PollSlot.Interest {
    fileprivate var opposite: PollSlot.Interest { self == .read ? .write : .read }
}
