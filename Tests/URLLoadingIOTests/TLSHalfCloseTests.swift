// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct TLSHalfCloseTests {
    /// Refuses all bytes while it is shut, as a socket does when its peer does not read.
    private final class Shutter: Transport {
        let inner: SocketTransport
        let isShut = Atomic<Bool>(false)
        init(_ inner: SocketTransport) { self.inner = inner }
        var slot: PollSlot { inner.slot }
        var description: String { inner.description }
        func hasPendingInput(askingKernel asks: Bool) -> Bool { inner.hasPendingInput(askingKernel: asks) }
        func finishWriting() { inner.finishWriting() }
        func close() { inner.close() }
        func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress {
            try inner.read(into: buffer)
        }
        func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress {
            isShut.load(ordering: .acquiring) ? .blocked(.write) : try inner.write(bytes)
        }
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A close_notify that meets a full socket is sent later, and once`(_ version: TLSVersion) async throws {
        let rig = try TLSRig(server: { $0.maximumVersion = version })
        var shutter: Shutter?
        let pair = try await rig.connect {
            let made = Shutter($0)
            shutter = made
            return made
        }
        try await send(Array("last".utf8), on: pair.client)
        shutter?.isShut.store(true, ordering: .releasing)
        for _ in 1...2 {
            let progress = try pair.client.endWriting()
            #expect(progress == .blocked(.write))
        }
        shutter?.isShut.store(false, ordering: .releasing)
        guard case .moved = try pair.client.endWriting() else { throw Unexpected.success }
        guard case .moved = try pair.client.endWriting() else { throw Unexpected.success }
        #expect(try await receive(from: pair.server) == Array("last".utf8))
        try await send(Array("answer".utf8), on: pair.server)
        pair.server.close()
        #expect(try await receive(from: pair.client) == Array("answer".utf8))
        pair.client.close()
    }
}
