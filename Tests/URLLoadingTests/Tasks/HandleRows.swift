// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading

struct HandleRows {
    @Test("A download without a destination is abandoned with its last handle, but not once it has ended")
    func lastHandle() {
        var running = LoadTaskState()
        running.addHandle()
        let isAbandoned = running.removeHandle(needsHandle: true)
        #expect(isAbandoned)
        var ended = LoadTaskState()
        ended.addHandle()
        _ = ended.end(.finished, [:])
        let isAbandonedAtEnd = ended.removeHandle(needsHandle: true)
        #expect(!isAbandonedAtEnd)
    }
}
