// SPDX-License-Identifier: Apache-2.0

// Resume data in the `userInfo` of an error, created when it is read. Most programs never read it; until then no file
// of a download is preserved and no bytes of an upload are copied.

import Foundation
import Synchronization
import URLLoadingIO

/// Data whose bytes are created at the first access. A cast with `as? Data` is an access.
final class LazyData: NSData {
    private let make: @Sendable () -> Data
    private struct Made: Sendable {
        // `NSData` is not `Sendable`; this instance is immutable.
        nonisolated(unsafe) let data: NSData
    }
    private let made = Lock<Made?>(nil)

    init(_ make: @escaping @Sendable () -> Data) {
        self.make = make
        super.init()
    }

    /// Not supported: an archive decodes as ordinary `NSData`.
    required init?(coder: NSCoder) { nil }

    /// The created data, kept because the pointer of `bytes` must stay valid. Two threads may create it at once; it is
    /// not created under the lock.
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
    /// A fixed text: printing an error must not create the resume data.
    override var description: String { "resume data" }
    override var debugDescription: String { description }
}
