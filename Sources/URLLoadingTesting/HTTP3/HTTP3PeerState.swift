// SPDX-License-Identifier: Apache-2.0

// The server's end of one connection as a value: the QUIC codec, the frames that have arrived, and what is to be sent.
// Each transition is one method, called under the lock of `HTTP3Peer`.

#if HTTP3

import URLLoading
import URLLoadingIO
import URLLoadingWire

struct HTTP3PeerState: Sendable {
    // Unsafe: accessed only under the connection's lock, as the whole state.
    nonisolated(unsafe) private let quic: QUICCodec
    nonisolated(unsafe) private let tls: QUICTLS
    nonisolated(unsafe) private let qpack = QPACKReader()
    nonisolated(unsafe) private let output = HTTP3Output()
    private var readers: [Int64: HTTP3StreamReader] = [:]
    /// What a script or the routes have not taken yet.
    private var arrivals: ArraySlice<HTTP3Peer.Arrival> = []
    private(set) var phase = Phase.opening
    private(set) var agreed: HTTPTestServer.TLSInfo?
    /// Streams that this side has reset, so that the code of their end is its own.
    private var aborted: Set<Int64> = []
    /// Slots of tasks that wait for a change of the connection.
    var waiters: [PollSlot] = []
    /// Whether the client is told that it may send more.
    var enlargesWindows = true
    /// True once the connection neither receives nor sends.
    var isSilent = false
    /// How the client ended streams and the connection, since the last call.
    private var endings: [HTTP3TestServer.RecordedEnding] = []
    private var complaints: [String] = []
    private let number: Int

    enum Phase: Sendable, Equatable {
        case opening
        case open(control: Int64, encoder: Int64, decoder: Int64)
        case over
    }

    /// The most arrivals that are kept. The windows limit their bytes, but a client may open and reset many streams.
    private static let mostArrivals = 20_000

    init(_ quic: QUICCodec, _ tls: QUICTLS, number: Int) {
        (self.quic, self.tls, self.number) = (quic, tls, number)
    }

    var isOver: Bool { phase == .over }

    // MARK: Datagrams and time

    mutating func receive(_ datagram: UnsafeRawBufferPointer, now: Int64) {
        guard !isSilent else { return }
        quic.receive(datagram, ecn: 0, now: now)
        // The datagram may have enlarged the window of the connection, of which there is no event.
        output.unblock()
        pump()
    }

    func owns(_ datagram: [UInt8]) -> Bool {
        !isOver && datagram.withUnsafeBytes { quic.isAddressee(of: $0) }
    }

    mutating func passDeadline(now: Int64) {
        guard !isSilent else { return }
        quic.passDeadline(now: now)
        pump()
    }

    var deadline: Int64? { isSilent ? nil : quic.deadline }

    mutating func nextDatagrams(into buffer: UnsafeMutableRawBufferPointer, now: Int64) -> QUICDatagrams? {
        guard !isSilent else { return nil }
        let datagrams = quic.nextDatagrams(into: buffer, from: output, now: now)
        pump()
        return datagrams
    }

    /// Returns the slots to wake, after any change.
    mutating func takeWaiters() -> [PollSlot] {
        defer { waiters = [] }
        return waiters
    }

    mutating func takeRecords() -> (endings: [HTTP3TestServer.RecordedEnding], complaints: [String]) {
        defer { (endings, complaints) = ([], []) }
        return (endings, complaints)
    }

    // MARK: Receiving

    private mutating func pump() {
        for event in quic.takeEvents() {
            switch event {
            case .handshakeCompleted: if phase == .opening { begin() }
            case .data(let stream, let range, let isEnd):
                // Early data comes before the end of the handshake.
                if phase == .opening { begin() }
                receive(Array(quic.received[range]), isEnd: isEnd, on: stream)
            case .acknowledged(let stream, let count): output.acknowledged(count, on: stream)
            case .reset(let stream, let code): wasEnded(stream, code)
            case .closed(let stream, let code):
                output.forget(stream)
                if let code { wasEnded(stream, code) }
                (readers[stream], _) = (nil, aborted.remove(stream))
                add(.init(stream, .closed, 0))
            case .ended(let end): self.end(end)
            case .earlyDataRejected, .handshakeConfirmed, .unblocked, .streamsPermitted, .token, .moved,
                .pathFailed:
                break
            }
        }
        quic.releaseReceived()
        for stream in output.waiting where !quic.takesBytes(stream) { output.stop(stream) }
    }

    private mutating func begin() {
        agreed = (try? tls.negotiated()).map { HTTPTestServer.TLSInfo($0) }
        guard let control = quic.openOutgoingStream(), let encoder = quic.openOutgoingStream(),
            let decoder = quic.openOutgoingStream()
        else { return close(.streamCreationError) }
        for stream in [control, encoder, decoder] { output.open(stream) }
        phase = .open(control: control, encoder: encoder, decoder: decoder)
    }

    private mutating func receive(_ bytes: [UInt8], isEnd: Bool, on stream: Int64) {
        let isRequest = stream & 2 == 0
        if readers[stream] == nil, isRequest { output.open(stream) }
        var reader = readers[stream] ?? HTTP3StreamReader(isRequest: isRequest)
        quic.arrived(bytes.count)
        let items = reader.read(bytes)
        readers[stream] = reader
        // The last arrival carries the credit for all bytes.
        for (index, item) in items.enumerated() {
            let size = index == items.count - 1 ? bytes.count : 0
            switch item {
            case .type(let type): add(.init(stream, .opened(type: type), size))
            case .frame(let frame) where isRequest && frame.kind == .headers: receiveSection(frame, size, on: stream)
            case .frame(let frame): add(.init(stream, .frame(frame, nil), size))
            case .tooLarge(let kind):
                complaints.append("a frame \(kind) that is too large")
                return close(.excessiveLoad)
            }
        }
        if items.isEmpty, enlargesWindows { quic.consumed(bytes.count, on: stream) }
        guard isEnd, !isOver else { return }
        guard reader.hasFrames != true || reader.isBetweenFrames else {
            complaints.append("stream \(stream) ends within a frame")
            return close(.frameError)
        }
        add(.init(stream, .end, 0))
    }

    private mutating func receiveSection(_ frame: HTTP3Frame, _ size: Int, on stream: Int64) {
        do throws(QPACKReader.Failure) {
            add(.init(stream, .frame(frame, try qpack.fields(of: frame.payload)), size))
        } catch {
            complaints.append("a field section that cannot be decoded: \(error.detail)")
            close(.qpackDecompressionFailed)
        }
    }

    private mutating func add(_ arrival: HTTP3Peer.Arrival) {
        guard arrivals.count < Self.mostArrivals else { return close(.excessiveLoad) }
        arrivals.append(arrival)
    }

    /// Takes the next arrival, and lets the client send as much more.
    mutating func takeArrival() -> HTTP3Peer.Arrival? {
        guard let arrival = arrivals.popFirst() else { return nil }
        if enlargesWindows, arrival.size > 0 { quic.consumed(arrival.size, on: Int64(arrival.stream)) }
        return arrival
    }

    private mutating func wasEnded(_ stream: Int64, _ code: UInt64) {
        guard !aborted.contains(stream) else { return }
        // A reset is reported again when its stream is over.
        aborted.insert(stream)
        output.stop(stream)
        let code = HTTP3Frame.ErrorCode(rawValue: code)
        add(.init(stream, .reset(code), 0))
        endings.append(.init(connection: number, stream: Int(stream), code: code, isOfTransport: false))
    }

    private mutating func end(_ end: QUICEnd) {
        phase = .over
        switch end {
        case .closedByPeer(.application(let code)): record(code, isOfTransport: false)
        case .closedByPeer(.transport(let code)): record(code.rawValue, isOfTransport: true)
        case .violation(let violation): complaints.append("\(violation)")
        default: break
        }
    }

    private mutating func record(_ code: UInt64, isOfTransport: Bool) {
        endings.append(
            .init(connection: number, stream: nil, code: .init(rawValue: code), isOfTransport: isOfTransport))
    }

    // MARK: Sending

    func takes(_ stream: Int) -> Bool { !isOver && output.takes(Int64(stream)) }
    func held(on stream: Int) -> Int { output.held(on: Int64(stream)) }
    var isDrained: Bool { isOver || isSilent || output.isDrained }
    func send(_ bytes: [UInt8], endStream: Bool, on stream: Int64) {
        output.append(bytes, endStream: endStream, to: stream)
    }

    /// Opens a stream in one direction; `nil` if the client permits no more.
    mutating func openStream() -> Int64? {
        guard let stream = quic.openOutgoingStream() else { return nil }
        output.open(stream)
        return stream
    }

    mutating func reset(_ stream: Int, _ code: HTTP3Frame.ErrorCode) {
        aborted.insert(Int64(stream))
        output.stop(Int64(stream))
        quic.stopSending(Int64(stream), code.rawValue)
    }

    mutating func stopReceiving(_ stream: Int, _ code: HTTP3Frame.ErrorCode) {
        quic.stopReceiving(Int64(stream), code.rawValue)
    }

    func keepAlive(after nanoseconds: Int64?) { quic.keepAlive(after: nanoseconds) }

    mutating func close(_ code: HTTP3Frame.ErrorCode) { close(.application(code.rawValue)) }
    mutating func close(_ code: QUICErrorCode) {
        quic.close(code)
        phase = .over
        // What has arrived behind the reason is of no account.
        arrivals = []
    }
}

#endif
