// SPDX-License-Identifier: Apache-2.0

// Processes the client's frames, each by its section of RFC 9113.

import Synchronization
import URLLoadingIO
import URLLoadingWire

extension HTTP2RoutesState {
    mutating func receive(_ arrival: HTTP2Arrival, _ server: HTTP2TestServer) -> Reaction {
        let frame = arrival.frame
        guard !isBroken else { return Reaction() }
        // §3.4
        if !hasSettings, frame.kind != .settings || frame.isAck { return fail(.protocolError, "first \(frame)") }
        // §4.2
        if frame.payload.count > maxFrameSize { return fail(.frameSizeError, "\(frame)") }
        // §6.2, §6.10
        if let open = openSection, frame.kind != .continuation || frame.stream != open.stream {
            return fail(.protocolError, "\(frame) in a field section")
        }
        switch frame.kind {
        case .settings: return settings(frame)
        case .ping, .goAway: return ofConnection(frame)
        case .windowUpdate: return windowUpdate(frame)
        case .data: return data(frame, knowsSettings: arrival.knowsSettings)
        case .headers, .continuation: return section(arrival, server)
        case .resetStream, .priority: return ofStream(frame)
        case .pushPromise: return fail(.protocolError, "\(frame)")
        default: return Reaction()
        }
    }

    /// §6.5
    private mutating func settings(_ frame: HTTP2Frame) -> Reaction {
        guard frame.stream == 0 else { return fail(.protocolError, "\(frame)") }
        guard let settings = frame.settings, !frame.isAck || frame.payload.isEmpty else {
            return fail(.frameSizeError, "\(frame)")
        }
        hasSettings = true
        guard !frame.isAck else { return Reaction() }
        for setting in settings {
            switch (setting.identifier, setting.value) {
            case (2, 2...): return fail(.protocolError, "ENABLE_PUSH \(setting.value)")
            case (4, 0x8000_0000...): return fail(.flowControlError, "INITIAL_WINDOW_SIZE \(setting.value)")
            case (5, ..<16_384), (5, 16_777_216...): return fail(.protocolError, "MAX_FRAME_SIZE \(setting.value)")
            default: break
            }
        }
        wakeAll()
        return Reaction(output: HTTP2Frame.settingsAck.bytes)
    }

    /// §6.7, §6.8
    private mutating func ofConnection(_ frame: HTTP2Frame) -> Reaction {
        guard frame.stream == 0 else { return fail(.protocolError, "\(frame)") }
        if frame.kind == .goAway {
            return frame.payload.count >= 8 ? Reaction() : fail(.frameSizeError, "\(frame)")
        }
        guard frame.payload.count == 8 else { return fail(.frameSizeError, "\(frame)") }
        return frame.isAck ? Reaction() : Reaction(output: HTTP2Frame.ping(frame.payload, ack: true).bytes)
    }

    /// §6.9. Windows that exceed 2^31 - 1 are the client's concern, and not detected here.
    private mutating func windowUpdate(_ frame: HTTP2Frame) -> Reaction {
        guard frame.payload.count == 4, let increment = frame.increment else {
            return fail(.frameSizeError, "\(frame)")
        }
        guard frame.stream <= lastStream else { return fail(.protocolError, "\(frame) on an idle stream") }
        guard increment > 0 else { return fail(.protocolError, "\(frame)") }
        if frame.stream == 0 { wakeAll() } else { wake(frame.stream) }
        return Reaction()
    }

    /// §6.3, §6.4
    private mutating func ofStream(_ frame: HTTP2Frame) -> Reaction {
        guard frame.stream > 0 else { return fail(.protocolError, "\(frame)") }
        guard frame.payload.count == (frame.kind == .priority ? 5 : 4) else { return fail(.frameSizeError, "\(frame)") }
        guard frame.kind == .resetStream else { return Reaction() }
        guard frame.stream <= lastStream else { return fail(.protocolError, "\(frame) on an idle stream") }
        guard let stream = streams[frame.stream] else { return Reaction() }
        past.insert(frame.stream)
        wake(frame.stream)
        streams[frame.stream]?.isReset = true
        guard !stream.isDue else { return Reaction() }
        streams[frame.stream] = nil
        return Reaction(closed: true)
    }

    /// §6.1
    private mutating func data(_ frame: HTTP2Frame, knowsSettings: Bool) -> Reaction {
        guard frame.stream > 0, frame.stream <= lastStream else {
            return fail(.protocolError, "\(frame) on an idle stream")
        }
        guard let content = frame.content else { return fail(.protocolError, "padding in \(frame)") }
        window -= frame.payload.count
        guard window >= 0 else { return fail(.flowControlError, "\(frame) beyond the connection's window") }
        var output = giveBack(frame.payload.count)
        guard var stream = streams[frame.stream], !stream.hasEnded, !stream.isReset else {
            return past.contains(frame.stream) ? fail(.streamClosed, "\(frame)") : Reaction(output: output)
        }
        stream.window -= frame.payload.count
        // §6.9.2: a client that does not know the server's window yet may use that of the protocol; the stream's window
        // is negative then. A frame without content uses none.
        let least = knowsSettings ? 0 : min(0, streamWindowSize - 65_535)
        guard frame.payload.isEmpty || stream.window >= least else {
            var reaction = fail(stream: frame.stream, .flowControlError, "\(frame) beyond its window")
            reaction.output = output + reaction.output
            return reaction
        }
        stream.bodyCount += Int64(content.count)
        if stream.route.readsBody { stream.body += content.prefix(max(0, bodyLimit - stream.body.count)) }
        stream.hasEnded = frame.endsStream
        if stream.isTunnel {
            stream.received += content
            streams[frame.stream] = stream
            if frame.endsStream { past.insert(frame.stream) }
            wake(frame.stream)
            return Reaction(output: output)
        }
        // Credit is returned in halves, so that few frames suffice.
        if stream.route.readsBody, !frame.endsStream, stream.window < (streamWindowSize + 1) / 2 {
            output += HTTP2Frame.windowUpdate(stream: frame.stream, streamWindowSize - stream.window).bytes
            stream.window = streamWindowSize
        }
        streams[frame.stream] = stream
        guard frame.endsStream else { return Reaction(output: output) }
        var reaction = ended(stream)
        reaction.output = output + reaction.output
        return reaction
    }

    private mutating func giveBack(_ count: Int) -> [UInt8] {
        consumed += count
        guard consumed >= windowSize / 2 else { return [] }
        defer {
            window += consumed
            consumed = 0
        }
        return HTTP2Frame.windowUpdate(consumed).bytes
    }

    /// Handles the end of a request.
    private mutating func ended(_ stream: Stream) -> Reaction {
        past.insert(stream.number)
        if let claimed = stream.fields["content-length"], Int64(claimed) != stream.bodyCount {
            return fail(
                stream: stream.number, .protocolError, "content-length \(claimed), but \(stream.bodyCount) bytes")
        }
        return stream.isDue ? Reaction() : due(stream.number)
    }

    private mutating func due(_ stream: Int) -> Reaction {
        streams[stream]?.isDue = true
        return Reaction(due: stream)
    }

    // MARK: Field sections, §6.2 and §6.10

    private mutating func section(_ arrival: HTTP2Arrival, _ server: HTTP2TestServer) -> Reaction {
        let frame = arrival.frame
        guard frame.stream > 0, frame.kind == .headers || openSection != nil, frame.content != nil
        else { return fail(.protocolError, "\(frame)") }
        let first = openSection ?? frame
        openSection = arrival.fields == nil ? first : nil
        guard let fields = arrival.fields else { return Reaction() }
        if first.stream <= lastStream { return trailers(first, fields) }
        guard first.stream.isMultiple(of: 2) == false else { return fail(.protocolError, "\(first) of a client") }
        lastStream = first.stream
        return open(first, fields, server, knowsSettings: arrival.knowsSettings)
    }

    private mutating func trailers(_ frame: HTTP2Frame, _ fields: HTTP2Fields) -> Reaction {
        guard let stream = streams[frame.stream], !stream.hasEnded, !stream.isReset else {
            return past.contains(frame.stream) ? fail(.streamClosed, "\(frame)") : Reaction()
        }
        guard frame.endsStream else { return fail(stream: frame.stream, .protocolError, "\(frame) in a body") }
        if let wrong = fields.wrongInTrailers { return fail(stream: frame.stream, .protocolError, wrong) }
        streams[frame.stream]?.trailers = fields.headers
        streams[frame.stream]?.hasEnded = true
        return ended(streams[frame.stream] ?? stream)
    }

    private mutating func open(
        _ frame: HTTP2Frame, _ fields: HTTP2Fields, _ server: HTTP2TestServer, knowsSettings: Bool
    ) -> Reaction {
        guard streams.count < maxStreams else {
            var reaction = fail(stream: frame.stream, .refusedStream, "more than \(maxStreams) streams")
            // §5.1.2: refused all the same, but the client has kept the rules that it knows.
            if !knowsSettings { reaction.complaint = nil }
            return reaction
        }
        if let wrong = fields.wrongInRequest { return fail(stream: frame.stream, .protocolError, wrong) }
        let isTunnel = fields[":protocol"] != nil
        if isTunnel, let wrong = fields.wrongInTunnel(isAllowed: hasTunnels, endsStream: frame.endsStream) {
            return fail(stream: frame.stream, .protocolError, wrong)
        }
        exchanges += 1
        let path = String((fields[":path"] ?? "").prefix { $0 != "?" })
        let route = server.state.withLock { $0.record.route(for: path) }
        var stream = Stream(
            number: frame.stream, exchange: exchanges, fields: fields, route: route, window: streamWindowSize)
        stream.hasEnded = frame.endsStream
        stream.isTunnel = isTunnel
        streams[frame.stream] = stream
        var reaction = Reaction()
        if frame.endsStream {
            reaction = ended(stream)
        } else if !route.readsBody || isTunnel {
            reaction = due(frame.stream)
        } else if fields["expect"]?.lowercased() == "100-continue" {
            // RFC 9110 §10.1.1.
            reaction.output = HTTP2Frame.headers(stream: frame.stream, HTTP2Fields(.continue).encoded()).bytes
        }
        reaction.opened = true
        return reaction
    }
}
