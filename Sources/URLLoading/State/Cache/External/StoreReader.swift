// SPDX-License-Identifier: Apache-2.0

// Reads a record of an external cache from pieces, and holds no more of it than it may have.

struct StoreReader: Sendable {
    enum Fault: Error, Sendable {
        /// The bytes are not a record, or not the one of this key.
        case damaged
        /// The session holds as many bytes as it may.
        case full
    }
    private let maximumBody: Int
    private let budget: MemoryBudget
    /// The prefix, then the head.
    private var start: [UInt8] = []
    private var prefix: StorePrefix?
    private var body: ChunkStorage?
    private var bodyCount = 0

    /// - Parameter budget: in which the body counts until its last chunk is released.
    init(maximumBody: Int, budget: MemoryBudget) { (self.maximumBody, self.budget) = (maximumBody, budget) }

    /// Takes the next bytes.
    mutating func take(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
        var rest = bytes[...]
        fill(upTo: StorePrefix.size, &rest)
        guard start.count >= StorePrefix.size else { return }
        if prefix == nil {
            prefix = start.withUnsafeBytes { StorePrefix($0, maximumBody: maximumBody) }
        }
        guard let prefix else { throw .damaged }
        fill(upTo: StorePrefix.size + prefix.headLength, &rest)
        guard !rest.isEmpty else { return }
        guard rest.count <= prefix.bodyLength - bodyCount else { throw .damaged }
        guard let body = body ?? budget.buffer(capacity: prefix.bodyLength) else { throw .full }
        self.body = body
        UnsafeMutableRawBufferPointer(rebasing: body.room(from: bodyCount)[..<rest.count])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest))
        bodyCount += rest.count
    }

    private mutating func fill(upTo count: Int, _ rest: inout Slice<UnsafeRawBufferPointer>) {
        let missing = min(max(0, count - start.count), rest.count)
        guard missing > 0 else { return }
        start.append(contentsOf: rest.prefix(missing))
        rest = rest.dropFirst(missing)
    }

    /// Returns the record when all bytes were taken.
    func record(_ key: StoreKey, signedWith signingKey: [UInt8]?) throws(Fault) -> StoreRecord {
        guard let prefix, start.count == StorePrefix.size + prefix.headLength else { throw .damaged }
        let chunk = body.map { Chunk(storage: $0, range: 0..<bodyCount) }
        let record = start.withUnsafeBytes { start in
            StoreRecord(
                prefix, UnsafeRawBufferPointer(rebasing: start[StorePrefix.size...]), chunk, key,
                signedWith: signingKey)
        }
        guard let record else { throw .damaged }
        return record
    }
}
