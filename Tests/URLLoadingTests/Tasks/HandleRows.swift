// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading

struct HandleRows {
    @Test("A download without a destination is abandoned with its last handle, but not once it has ended")
    func lastHandle() {
        var running = LoadTaskState()
        running.addHandle()
        #expect(running.removeHandle(needsHandle: true))
        var ended = LoadTaskState()
        ended.addHandle()
        _ = ended.end(.finished, [:])
        #expect(!ended.removeHandle(needsHandle: true))
    }
}
