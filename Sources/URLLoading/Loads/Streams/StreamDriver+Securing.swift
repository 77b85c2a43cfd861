// SPDX-License-Identifier: Apache-2.0

// TLS over a connection in use (STARTTLS and its kin).
//
// Bytes that arrive between the last plaintext answer and the handshake are not authenticated. Kept, they would be
// read after the handshake as if they were (CVE-2011-0411); dropped, legitimate bytes might be lost. So they end the
// stream.

import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

extension StreamDriver {
    func secure() async throws(LoadError) {
        try enter(.input)
        defer { leave(.input) }
        try enter(.output)
        defer { leave(.output) }
        try await run(.output, timeout: nil) { () throws(LoadError) in
            if let error = ending(.output) { throw error }
            return state.withLock { $0.readyTransport } == nil ? .notReady : .done
        }
        guard let link = state.withLock({ $0.link }), !link.isSecure, let origin else { return }
        try checkOpen()
        state.withLock { $0.beginHandshake() }
        defer { state.withLock { $0.endHandshake() } }
        do throws(LoadError) {
            try checkSilent(link.transport)
            let secured = try await handshake(over: link.transport, with: origin)
            state.withLock { $0.secured(secured) }
        } catch {
            let error = error.at(url)
            state.withLock { $0.fail(error) }
            buffer = StreamBuffer()
            throw error
        }
    }

    private func checkOpen() throws(LoadError) {
        guard case (.open, .open) = state.withLock({ ($0.input, $0.output) })
        else { throw failure(.streamClosed, .output) }
    }

    private func checkSilent(_ transport: any Transport) throws(LoadError) {
        var byte: UInt8 = 0
        let progress: Progress
        do throws(IOFailure) {
            progress = try withUnsafeMutableBytes(of: &byte) { buffer throws(IOFailure) in
                try transport.read(into: buffer)
            }
        } catch {
            throw LoadError(error, .securing)
        }
        switch progress {
        case .blocked where buffer.isEmpty: return
        case .end where buffer.isEmpty: throw LoadError(.connectionLost, phase: .securing, party: .remote)
        default: throw LoadError(.unexpectedPlaintext, phase: .securing, party: .remote)
        }
    }

    /// Runs the TLS handshake. Cancelling the calling task ends the stream, because an incomplete handshake cannot be
    /// resumed.
    private func handshake(over transport: any Transport, with origin: Origin) async throws(LoadError) -> any Transport
    {
        let result: Result<any Transport, LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) {
                return .success(try await core.pool.connector.secure(transport, to: origin, self))
            } catch {
                return .failure(failure(or: error))
            }
        } onCancel: {
            stop(.cancelled)
        }
        return try result.get()
    }
}
