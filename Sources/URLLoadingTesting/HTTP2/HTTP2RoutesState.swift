// SPDX-License-Identifier: Apache-2.0

// The state of a well-behaved connection, and the effect of the client's frames on it. Pure except for the slots it
// refers to.

import URLLoadingIO
import URLLoadingWire

struct HTTP2RoutesState: Sendable {
    /// The resource that an answering task waits for.
    enum AwaitedResource: Sendable { case window, output }

    struct Stream: Sendable {
        let number: Int
        let exchange: Int
        let fields: HTTP2Fields
        let route: HTTPTestServer.Route
        var slot: PollSlot?
        var awaited: AwaitedResource?
        var body: [UInt8] = []
        var bodyCount: Int64 = 0
        var trailers = Headers()
        /// The number of bytes that the client may still send.
        var window: Int
        var hasEnded = false
        var isReset = false
        var isDue = false
        /// True for a stream opened by extended CONNECT (RFC 8441 §4).
        var isTunnel = false
        /// Data that arrived over a tunnel and was not consumed yet.
        var received: [UInt8] = []
    }

    struct Reaction: Sendable {
        var output: [UInt8] = []
        /// A stream whose request is to be answered now.
        var due: Int?
        var complaint: String?
        var opened = false
        var closed = false
        /// Whether the output is the GOAWAY for a connection error.
        var endsConnection = false
    }

    /// Output size in bytes beyond which responses wait until some of it was written.
    static let outputLimit = 256 * 1024

    var output: [UInt8] = []
    var streams: [Int: Stream] = [:]
    var isEnding = false
    var endsWithReset = false
    /// True once the client has made a connection error; further frames are ignored.
    var isBroken = false
    /// True once the GOAWAY for that error was queued. Not the same moment: the error is reported first, and a writer
    /// that found no output meanwhile would end without the GOAWAY.
    var hasGoAway = false

    var lastStream = 0
    var exchanges = 0
    var hasSettings = false
    var openSection: HTTP2Frame?
    var window: Int
    var consumed = 0
    /// Streams that the client has ended or reset, and that are answered.
    var past: Set<Int> = []
    private var woken: [PollSlot] = []

    let windowSize: Int
    let streamWindowSize: Int
    let maxFrameSize: Int
    let maxStreams: Int
    let bodyLimit: Int
    let hasTunnels: Bool

    init(_ configuration: HTTP2TestServer.Configuration) {
        func setting(_ identifier: UInt16) -> Int? {
            configuration.settings.last { $0.identifier == identifier }.map { Int($0.value) }
        }
        windowSize = max(65_535, configuration.connectionWindow)
        window = windowSize
        streamWindowSize = setting(4) ?? 65_535
        maxFrameSize = setting(5) ?? 16_384
        maxStreams = setting(3) ?? .max
        hasTunnels = setting(8) == 1
        bodyLimit = max(0, configuration.recordedBodySize)
    }

    /// Takes the data that arrived over a tunnel, and returns as much flow-control credit.
    mutating func takeReceived(on number: Int) -> (bytes: [UInt8], output: [UInt8]) {
        guard let bytes = streams[number]?.received, !bytes.isEmpty else { return ([], []) }
        streams[number]?.received = []
        guard streams[number]?.hasEnded == false, streams[number]?.isReset == false else { return (bytes, []) }
        streams[number]?.window += bytes.count
        return (bytes, HTTP2Frame.windowUpdate(stream: number, bytes.count).bytes)
    }

    mutating func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    /// Returns the slots of the tasks that wait for such a resource.
    func wake(_ matches: (AwaitedResource) -> Bool) -> [PollSlot] {
        streams.values.compactMap { stream in stream.awaited.map(matches) == true ? stream.slot : nil }
    }

    mutating func takeWoken() -> [PollSlot] {
        defer { woken = [] }
        return woken
    }

    mutating func wakeAll() { woken += streams.values.compactMap(\.slot) }
    mutating func wake(_ stream: Int) { if let slot = streams[stream]?.slot { woken.append(slot) } }

    /// Handles a connection error: the connection ends with a GOAWAY (RFC 9113 §5.4.1).
    mutating func fail(_ code: HTTP2Frame.ErrorCode, _ why: String) -> Reaction {
        isBroken = true
        return Reaction(
            output: HTTP2Frame.goAway(last: lastStream, code, debug: Array(why.utf8)).bytes,
            complaint: "\(code): \(why)", endsConnection: true)
    }

    /// Handles a stream error: the stream ends with RST_STREAM (§5.4.2).
    mutating func fail(stream: Int, _ code: HTTP2Frame.ErrorCode, _ why: String) -> Reaction {
        let wasOpen = streams[stream] != nil
        let wasDue = streams[stream]?.isDue == true
        streams[stream]?.isReset = true
        wake(stream)
        if !wasDue { streams[stream] = nil }
        return Reaction(
            output: HTTP2Frame.resetStream(stream, code).bytes, complaint: "\(code) on stream \(stream): \(why)",
            closed: wasOpen && !wasDue)
    }
}
