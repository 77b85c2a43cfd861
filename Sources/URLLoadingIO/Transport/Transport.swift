// A two-way flow of bytes: a socket, TLS over one, later a tunnel. Its calls never wait. Whoever
// finds it not ready parks on its slot and asks again, so that one place (`Poller.park`) knows how a
// wait is ended. A transport has one owner at a time and no lock.

package enum Progress: Sendable, Equatable {
    case moved(Int)
    /// The peer will send no more. For TLS only after its close_notify; see `TLSTransport`.
    case end
    /// Nothing moves before the slot hears this. TLS may have to write in order to read.
    case blocked(PollSlot.Interest)
}

package protocol Transport: AnyObject, Sendable {
    var slot: PollSlot { get }
    /// Fills `buffer` (never empty) as far as bytes are there.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Progress
    /// Takes as much of `bytes` as goes out now. After `.blocked` the same bytes come again.
    func write(_ bytes: UnsafeRawBufferPointer) throws(IOFailure) -> Progress
    /// Takes bytes of a file as `write` does, without reading them here; `.end` at the end of the file, `nil`
    /// if this transport cannot: the bytes must be read and written.
    func sendFile(_ file: FileReader, at offset: Int64, count: Int) throws(IOFailure) -> Progress?
    /// Says that we send no more, as far as that goes without waiting.
    func finishWriting()
    /// The same for whoever can wait until the peer is sure to hear it: again after `.blocked`.
    func endWriting() throws(IOFailure) -> Progress
    /// Ends both directions and frees the descriptor. May be called twice.
    func close()
    /// True if bytes, an end or an error wait to be read: an idle connection of which this is true
    /// must not be used again. Without asking the kernel it knows only what the poller has heard.
    func hasPendingInput(askingKernel: Bool) -> Bool
    /// Asked after a read: false if there is nothing more until the slot hears of it, so that another read would only
    /// find that out.
    var mayHoldMore: Bool { get }
    /// The socket's other end, as far as it is known: behind a tunnel, the tunnel's.
    var remoteAddress: SocketAddress? { get }
    /// The socket's own end. Asks the kernel.
    var localAddress: SocketAddress? { get }
    /// What it is made of, top first: `tls1.3(h=example.org) over tcp(127.0.0.1:443)`.
    var description: String { get }
}

extension Transport {
    package var mayHoldMore: Bool { true }
    package func endWriting() throws(IOFailure) -> Progress {
        finishWriting()
        return .moved(0)
    }
    package func sendFile(_ file: FileReader, at offset: Int64, count: Int) throws(IOFailure) -> Progress? { nil }
    package var remoteAddress: SocketAddress? { nil }
    package var localAddress: SocketAddress? { nil }

    /// Waits for bytes. Returns their number, 0 at the end.
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

    /// Waits until all of `bytes` is taken.
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
