// SPDX-License-Identifier: Apache-2.0

// Writes a body to disk: a small one is collected for a pack, a large one is written to a file as it arrives.

import Synchronization
import URLLoadingIO

final class DiskWriting: CacheWriting {
    private struct State: Sendable {
        var collected: GrowingBody
        var file: DiskFile?
        var count: Int64 = 0
        var isOver = false
    }
    private let state: Lock<State>
    private let storage: DiskStorage
    private let response: StoredResponse
    private let length: Int64?
    private let limit: Int64
    private let onEnd: (@Sendable (DiskEntry) -> Void)?

    /// A chunk of at least this size is written directly; smaller ones are combined, because each would keep its read
    /// buffer alive.
    private static let directSize = 16 << 10
    private static let collectedSize = 64 << 10

    init(
        _ response: StoredResponse, length: Int64?, limit: Int64, completing base: StoredResponse?,
        _ storage: DiskStorage,
        _ onEnd: (@Sendable (DiskEntry) -> Void)?
    ) {
        self.onEnd = onEnd
        self.response = response
        self.length = length
        self.limit = limit
        self.storage = storage
        var state = State(collected: GrowingBody(expecting: Int(min(length ?? 0, Int64(DiskStorage.packLimit)))))
        if let base {
            let file = DiskFile()
            state.file = file
            state.count = base.storedLength
            storage.submit(.copy(file, base))
        }
        self.state = Lock(state)
    }

    deinit { storage.abandon(response.id) }

    func append(_ chunk: Chunk) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isOver else { return false }
            state.count += Int64(chunk.count)
            let isRefused = state.count > limit || state.file?.hasFailed == true
            guard !isRefused, storage.queued.load(ordering: .relaxed) < DiskStorage.overfull else {
                state.isOver = true
                state.collected = GrowingBody()
                return false
            }
            take(chunk, &state)
            return true
        }
        if !isTaken { storage.abandon(response.id) }
        return isTaken
    }

    private func take(_ chunk: Chunk, _ state: inout State) {
        if state.file == nil, state.count > Int64(DiskStorage.packLimit) { state.file = DiskFile() }
        if let file = state.file, chunk.count >= Self.directSize {
            pass(on: &state)
            return storage.submit(.write(file, chunk))
        }
        chunk.withUnsafeBytes { state.collected.append($0) }
        if state.file != nil, state.collected.count >= Self.collectedSize { pass(on: &state) }
    }

    private func pass(on state: inout State) {
        guard let file = state.file, state.collected.count > 0 else { return }
        storage.submit(.write(file, state.collected.take()))
    }

    var isBehind: Bool { storage.isBehind }
    func ready(_ handle: LoadHandle) async { await storage.ready(handle) }

    func finish() { end { .whole($0) } }

    func abandon(isResumable: Bool) {
        let length = length
        end { isResumable && $0 > 0 ? .beginning($0, of: length) : nil }
    }

    private func end(_ extent: (Int64) -> StoredResponse.Extent?) {
        let entry = state.withLock { state -> DiskEntry? in
            guard !state.isOver else { return nil }
            state.isOver = true
            guard let extent = extent(state.count) else { return nil }
            var response = response
            response.extent = extent
            pass(on: &state)
            return DiskEntry(response, body: state.file == nil ? state.collected.take() : nil, file: state.file)
        }
        guard let entry else { return storage.abandon(response.id) }
        if let onEnd { onEnd(entry) } else { storage.end(entry) }
    }
}
