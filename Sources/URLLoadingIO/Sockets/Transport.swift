// SPDX-License-Identifier: Apache-2.0

// A bidirectional byte stream: a socket, TLS, or a tunnel. Its methods never wait. A task that finds it not ready parks
// on its slot and tries again, so that one place (`Poller.park`) knows how a wait is ended. A transport has one owner
// at a time and no lock.

package enum Progress: Sendable, Equatable {
    case moved(Int)
    /// The peer will send no more. With TLS, only after its close_notify; see `TLSTransport`.
    case end
    /// Nothing can be moved before the slot is notified of this readiness. TLS may have to write in order to read.
    case blocked(PollSlot.Interest)
}

package protocol Transport: AnyObject, Sendable {
    var slot: PollSlot { get }
    /// Reads available bytes into `buffer`, which is never empty.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress
    /// Writes as much of `bytes` as possible now. After `.blocked`, the caller passes the same bytes again.
    func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress
    /// Sends bytes of a file without reading them into this process; `.end` at the end of the file, `nil` if this
    /// transport cannot do it, so that the caller must read and write.
    func sendFile(_ file: FileReader, at offset: Int64, count: Int) throws(IOFailure) -> Progress?
    /// Tells the peer that no more data follows, as far as that is possible without waiting.
    func finishWriting()
    /// Tells the peer reliably that no more data follows. After `.blocked`, the caller waits and calls it again.
    func endWriting() throws(IOFailure) -> Progress
    /// Closes both directions and frees the descriptor. May be called twice.
    func close()
    /// Returns true if data, an end or an error is pending; an idle connection must then not be reused. Without asking
    /// the kernel, only the poller's notifications are considered.
    func hasPendingInput(askingKernel: Bool) -> Bool
    /// False if no more data can be there until the slot is notified, so that another read would be in vain. True also
    /// for bytes above the socket, which no notification announces: a reader reads them before it waits.
    var mayHoldMore: Bool { get }
    /// Lets the slot be notified only once `count` bytes have arrived, or the peer has closed; 1 for any data, which is
    /// the default. A read returns fewer bytes all the same. Returns false if the transport cannot do it, as bytes of
    /// TLS records and tunnels are counted otherwise.
    func notifyReadable(at count: Int) -> Bool
    /// Lets the system acknowledge at once what was received. By default it waits for up to 40 ms, in the hope that
    /// data goes the same way.
    func acknowledge()
    /// The socket's remote address, if known; behind a tunnel, the tunnel's.
    var remoteAddress: SocketAddress? { get }
    /// The socket's local address. Calls the kernel.
    var localAddress: SocketAddress? { get }
    /// The layers of the transport, top first: `tls1.3(h=example.org) over tcp(127.0.0.1:443)`.
    var description: String { get }
}

extension Transport {
    package var mayHoldMore: Bool { true }
    package func notifyReadable(at count: Int) -> Bool { false }
    package func acknowledge() {}
    package func endWriting() throws(IOFailure) -> Progress {
        finishWriting()
        return .moved(0)
    }
    package func sendFile(_ file: FileReader, at offset: Int64, count: Int) throws(IOFailure) -> Progress? { nil }
    package var remoteAddress: SocketAddress? { nil }
    package var localAddress: SocketAddress? { nil }

    /// Waits for data. Returns the number of bytes read, 0 at the end.
    package func receive(into buffer: UnsafeMutableRawBufferPointer, _ token: StopToken) async throws(IOFailure) -> Int
    {
        while true {
            try token.check(.read)
            switch try read(into: buffer) {
            case .moved(let count): return count
            case .end: return 0
            case .blocked(let interest): await Poller.shared.park(slot, interest, token)
            }
        }
    }

    /// Waits until all of `bytes` is written.
    package func send(_ bytes: UnsafeRawBufferPointer, _ token: StopToken) async throws(IOFailure) {
        var rest = bytes
        while !rest.isEmpty {
            try token.check(.write)
            switch try write(rest) {
            case .moved(let count): rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            case .end: throw IOFailure(.closedByPeer, .write)
            case .blocked(let interest): await Poller.shared.park(slot, interest, token)
            }
        }
    }
}
