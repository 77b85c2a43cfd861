// Resume data in the `userInfo` of an error. Most programs never look at it, so it is made when it is read: what a
// download has loaded stays on the disk only then, and what an upload was sending is copied only then.

import Foundation
import Synchronization
import URLLoadingIO

/// Bytes that are made when they are first asked for. `as? Data` asks.
final class LazyData: NSData {
    private let make: @Sendable () -> Data
    private struct Made: Sendable {
        // `NSData` is not `Sendable`; this one is never changed.
        nonisolated(unsafe) let data: NSData
    }
    private let made = Lock<Made?>(nil)

    init(_ make: @escaping @Sendable () -> Data) {
        self.make = make
        super.init()
    }

    /// Read back it is data as any other.
    required init?(coder: NSCoder) { nil }

    /// Kept: `bytes` must stay where they are. One may be made in vain, but none under the lock.
    private var content: NSData {
        if let made = made.withLock({ $0 }) { return made.data }
        let new = Made(data: make().withUnsafeBytes { NSData(bytes: $0.baseAddress, length: $0.count) })
        return made.withLock { made in
            let first = made ?? new
            made = first
            return first
        }.data
    }

    override var length: Int { content.length }
    override var bytes: UnsafeRawPointer { content.bytes }
    override func copy(with zone: NSZone? = nil) -> Any { content.copy(with: zone) }
    override func mutableCopy(with zone: NSZone? = nil) -> Any { content.mutableCopy(with: zone) }
    override func encode(with coder: NSCoder) { content.encode(with: coder) }
    override var classForCoder: AnyClass { NSData.self }
    /// A printed error does not resume the load, so no bytes are made for it.
    override var description: String { "resume data" }
    override var debugDescription: String { description }
}
