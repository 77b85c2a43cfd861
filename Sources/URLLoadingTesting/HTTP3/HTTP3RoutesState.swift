// SPDX-License-Identifier: Apache-2.0

// What the arrivals of a well-behaved connection mean, each by its section of RFC 9114. Pure.

#if HTTP3

import URLLoadingWire

struct HTTP3RoutesState: Sendable {
    struct Stream: Sendable {
        let number: Int
        let exchange: Int
        let fields: HTTP2Fields
        let route: HTTPTestServer.Route
        var body: [UInt8] = []
        var bodyCount: Int64 = 0
        var trailers = Headers()
        var hasTrailers = false
        var hasEnded = false
        var isReset = false
        var isDue = false
        var isAnswered = false
        /// Both directions are over for QUIC.
        var isClosed = false
    }

    struct Reaction: Sendable {
        /// A stream whose request is to be answered now.
        var due: Int?
        /// Ends the connection.
        var failure: (code: HTTP3Frame.ErrorCode, why: String)?
        /// Ends the stream; without a reason if the client kept the rules.
        var refusal: (code: HTTP3Frame.ErrorCode, why: String?)?
        var interim: HTTP3Frame?
        var opened = false
        var closed = false
    }

    var streams: [Int: Stream] = [:]
    private let bodyLimit: Int
    private var exchanges = 0
    /// The streams in one direction by their type.
    private var oneWay: [Int: UInt64] = [:]
    private var hasSettings = false
    /// The first stream that is rejected since a GOAWAY.
    private var rejected: Int?
    /// The streams that were ended for a violation, and are not over yet.
    private var refused: Set<Int> = []
    /// The first stream after those that have arrived.
    private var next = 0

    init(bodyLimit: Int) { self.bodyLimit = max(0, bodyLimit) }

    /// Returns the number for GOAWAY: the first request that will be rejected.
    mutating func goAway() -> Int {
        rejected = min(rejected ?? .max, next)
        return rejected ?? next
    }

    mutating func receive(
        _ arrival: HTTP3Peer.Arrival, _ route: (String) -> HTTPTestServer.Route
    ) -> Reaction {
        let isRequest = arrival.stream & 2 == 0
        if isRequest, refused.contains(arrival.stream), arrival.content != .closed { return Reaction() }
        if isRequest { next = max(next, arrival.stream + 4) }
        switch arrival.content {
        case .opened(let type): return opened(arrival.stream, type)
        case .frame(let frame, let fields):
            return isRequest ? receive(frame, fields, arrival.stream, route) : receiveControl(frame)
        case .closed:
            refused.remove(arrival.stream)
            streams[arrival.stream]?.isClosed = true
            if let stream = streams[arrival.stream], stream.isAnswered || !stream.isDue {
                streams[arrival.stream] = nil
            }
            return Reaction()
        // §6.2.1, RFC 9204 §4.2
        case .end, .reset:
            if isRequest { return arrival.content == .end ? ended(arrival.stream) : reset(arrival.stream) }
            guard let type = oneWay[arrival.stream], [0, 2, 3].contains(type) else { return Reaction() }
            return fail(.closedCriticalStream, "the end of the stream of type \(type)")
        }
    }

    private func fail(_ code: HTTP3Frame.ErrorCode, _ why: String) -> Reaction { Reaction(failure: (code, why)) }

    /// §6.2
    private mutating func opened(_ stream: Int, _ type: UInt64) -> Reaction {
        guard [0, 1, 2, 3].contains(type) else { return Reaction() }
        guard type != 1, !oneWay.values.contains(type) else {
            return fail(.streamCreationError, "another stream of type \(type)")
        }
        oneWay[stream] = type
        return Reaction()
    }

    /// §7.2
    private mutating func receiveControl(_ frame: HTTP3Frame) -> Reaction {
        if frame.kind != .settings, !hasSettings { return fail(.missingSettings, "first \(frame)") }
        switch frame.kind {
        case .settings:
            guard !hasSettings else { return fail(.frameUnexpected, "SETTINGS again") }
            hasSettings = true
            guard let settings = frame.settings else { return fail(.frameError, "\(frame)") }
            let isWrong = settings.contains { (2...5).contains($0.identifier) }
            guard !isWrong, Set(settings.map(\.identifier)).count == settings.count else {
                return fail(.settingsError, "\(settings)")
            }
        case .goAway, .cancelPush, .maxPushID:
            if frame.number == nil { return fail(.frameError, "\(frame)") }
        case let kind where kind == .data || kind == .headers || kind == .pushPromise || kind.isReserved:
            return fail(.frameUnexpected, "\(frame) on the control stream")
        default: break
        }
        return Reaction()
    }

    /// §4.1
    private mutating func receive(
        _ frame: HTTP3Frame, _ fields: HTTP2Fields?, _ number: Int, _ route: (String) -> HTTPTestServer.Route
    ) -> Reaction {
        switch frame.kind {
        case .headers where streams[number] != nil: return trailers(fields ?? [:], number)
        case .headers: return open(fields ?? [:], number, route)
        case .data:
            guard var stream = streams[number] else { return fail(.frameUnexpected, "DATA before HEADERS") }
            guard !stream.hasTrailers else { return fail(.frameUnexpected, "DATA after trailers") }
            stream.bodyCount += Int64(frame.payload.count)
            if stream.route.readsBody, !stream.isAnswered {
                stream.body += frame.payload.prefix(max(0, bodyLimit - stream.body.count))
            }
            streams[number] = stream
            return Reaction()
        case .settings, .goAway, .cancelPush, .maxPushID, .pushPromise:
            return fail(.frameUnexpected, "\(frame) on a stream of a request")
        case let kind where kind.isReserved: return fail(.frameUnexpected, "\(frame)")
        default: return Reaction()
        }
    }

    private mutating func open(
        _ fields: HTTP2Fields, _ number: Int, _ route: (String) -> HTTPTestServer.Route
    ) -> Reaction {
        if let rejected, number >= rejected { return refuse(number, .requestRejected, nil) }
        if let wrong = fields.wrongInRequest { return refuse(number, .messageError, wrong) }
        exchanges += 1
        let path = String((fields[":path"] ?? "").prefix { $0 != "?" })
        let stream = Stream(number: number, exchange: exchanges, fields: fields, route: route(path))
        streams[number] = stream
        var reaction = Reaction(opened: true)
        if !stream.route.readsBody {
            reaction.due = due(number)
        } else if fields["expect"]?.lowercased() == "100-continue" {
            // RFC 9110 §10.1.1
            reaction.interim = .headers(HTTP2Fields(.continue))
        }
        return reaction
    }

    private mutating func trailers(_ fields: HTTP2Fields, _ number: Int) -> Reaction {
        guard streams[number]?.hasTrailers == false else { return fail(.frameUnexpected, "HEADERS after trailers") }
        if let wrong = fields.wrongInTrailers { return refuse(number, .messageError, wrong) }
        streams[number]?.trailers = fields.headers
        streams[number]?.hasTrailers = true
        return Reaction()
    }

    private mutating func due(_ number: Int) -> Int? {
        guard streams[number]?.isDue == false, streams[number]?.isReset == false else { return nil }
        streams[number]?.isDue = true
        return number
    }

    private mutating func ended(_ number: Int) -> Reaction {
        guard let stream = streams[number] else {
            return refuse(number, .requestIncomplete, "the end of a stream without a request")
        }
        streams[number]?.hasEnded = true
        if let claimed = stream.fields["content-length"], Int64(claimed) != stream.bodyCount {
            return refuse(number, .messageError, "content-length \(claimed), but \(stream.bodyCount) bytes")
        }
        return Reaction(due: due(number))
    }

    /// The request was answered. Returns whether its client is still sending.
    mutating func answered(_ number: Int) -> Bool {
        guard let stream = streams[number] else { return false }
        guard !stream.isClosed else {
            streams[number] = nil
            return false
        }
        streams[number]?.isAnswered = true
        streams[number]?.body = []
        return !stream.hasEnded && !stream.isReset
    }

    /// Ends a stream because of its client; what answers it finds it ended.
    private mutating func refuse(_ number: Int, _ code: HTTP3Frame.ErrorCode, _ why: String?) -> Reaction {
        refused.insert(number)
        var reaction = reset(number)
        reaction.refusal = (code, why)
        return reaction
    }

    private mutating func reset(_ number: Int) -> Reaction {
        guard let stream = streams[number], !stream.isReset else { return Reaction() }
        streams[number]?.isReset = true
        return Reaction(closed: !stream.isDue)
    }
}

extension HTTP3Frame.Kind {
    /// Whether it is a type of HTTP/2 that HTTP/3 forbids (§7.2.8).
    fileprivate var isReserved: Bool { [2, 6, 8, 9].contains(rawValue) }
}

#endif
