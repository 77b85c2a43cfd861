/// What a file has yet to hear of: rows by key, the last word on each; and before them that all since a moment is gone.
package struct PendingRows<Key: Hashable & Sendable, Row: Sendable>: Sendable {
    /// `nil` for a row that goes.
    package private(set) var rows: [Key: Row?] = [:]
    /// What is known of rows better than the file does, and makes none: who has removed or changed one in the meantime is right.
    package private(set) var notes: [Key: Row] = [:]
    /// A moment as the rows have it.
    package private(set) var clearedSince: Double?

    package init() {}

    package var isEmpty: Bool { rows.isEmpty && notes.isEmpty && clearedSince == nil }

    package mutating func set(_ row: Row?, for key: Key) {
        rows.updateValue(row, forKey: key)
        notes[key] = nil
    }

    package mutating func note(_ row: Row, for key: Key) { notes[key] = row }

    /// All rows that were made since then go, those included that nobody has told this process of.
    package mutating func clear(since moment: Double) {
        clearedSince = min(clearedSince ?? moment, moment)
    }

    /// What is here came after what could not be written.
    package mutating func restore(_ earlier: PendingRows) {
        if let moment = earlier.clearedSince { clear(since: moment) }
        for (key, row) in earlier.rows where rows[key] == nil { rows.updateValue(row, forKey: key) }
        for (key, row) in earlier.notes where rows[key] == nil && notes[key] == nil { notes[key] = row }
    }

    package mutating func take() -> PendingRows {
        defer { self = PendingRows() }
        return self
    }
}
