// SPDX-License-Identifier: Apache-2.0

import Synchronization
import URLLoadingIO

/// Buffers that connections share: one is taken when bytes can be read, and given back when they are consumed. So few
/// buffers serve many connections, and these few stay in the processor's caches.
final class ReadBuffers: Sendable {
    /// For heads and small bodies.
    static let small = ReadBuffers(size: 16 * 1024, most: 16)
    /// For the frames of WebSockets.
    static let large = ReadBuffers(size: 256 * 1024, most: 8)

    /// The size of a buffer in bytes.
    let size: Int
    private let most: Int
    private let spare = Lock<[ChunkStorage]>([])

    private init(size: Int, most: Int) { (self.size, self.most) = (size, most) }

    func take() -> ChunkStorage { spare.withLock { $0.popLast() } ?? ChunkStorage(capacity: size) }

    /// - Parameter storage: a buffer that no chunk refers to; one of another size is not kept.
    func giveBack(_ storage: ChunkStorage) {
        guard storage.capacity == size else { return }
        spare.withLock { if $0.count < most { $0.append(storage) } }
    }
}
