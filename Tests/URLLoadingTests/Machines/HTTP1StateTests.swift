// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingWire

@testable import URLLoading

/// How far the response of an HTTP/1.1 connection has come, and whether another exchange may follow.
@Suite struct HTTP1StateTests {
    /// A state that has sent a GET.
    private func sent(isTolerant: Bool = false) throws -> HTTP1State {
        var state = HTTP1State(HTTP1Codec(role: .client, isTolerant: isTolerant))
        try send(&state)
        return state
    }

    private func send(_ state: inout HTTP1State) throws {
        try state.begin()
        var output: [UInt8] = []
        try state.codec.sendRequest(
            method: .get, target: Array("/".utf8), host: Array("a".utf8), headers: [:], framing: .none, into: &output)
    }

    /// Gives the state bytes, and the end after them, and takes all events.
    @discardableResult
    private func receive(
        _ text: String, end: Bool = false, in state: inout HTTP1State
    ) throws(LoadError) -> [HTTP1Event] {
        var (events, bytes) = ([HTTP1Event](), Array(text.utf8))
        if !bytes.isEmpty { state.received() }
        if end { state.receivedEnd() }
        while true {
            var (consumed, result) = (0, Result<HTTP1Event?, LoadError>.success(nil))
            bytes.withUnsafeBytes { input in
                result = Result { () throws(LoadError) in try state.next(input, consumed: &consumed) }
            }
            guard let event = try result.get() else { return events }
            events.append(event)
            bytes.removeFirst(consumed)
            if case .end = event { return events }
        }
    }

    @Test("what has arrived is acknowledged once before the wait for the rest, after the first exchange")
    func acknowledges() throws {
        var state = try sent()
        try receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", in: &state)
        // A new connection acknowledges at once by itself.
        var answers = [state.acknowledges()]
        try receive("ab", in: &state)
        for _ in 0..<2 {
            try send(&state)
            answers.append(state.acknowledges())
            try receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", in: &state)
            answers += [state.acknowledges(), state.acknowledges()]
            try receive("ab", in: &state)
        }
        #expect(answers == [false, false, true, false, false, true, false])
    }

    @Test("what follows an interim response is acknowledged in the first exchange, too")
    func acknowledgesAfterInterim() throws {
        var state = try sent()
        try receive("HTTP/1.1 100 Continue\r\n\r\n", in: &state)
        var answers = [state.acknowledges(), state.acknowledges()]
        try receive("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", in: &state)
        answers += [state.acknowledges(), state.acknowledges()]
        #expect(answers == [true, false, true, false])
    }

    /// What the questions answer after some bytes.
    private struct Row: Sendable, CustomTestStringConvertible {
        let text: String
        var end = false
        let received: Bool
        let head: Bool
        let phase: LoadError.Phase
        let mayBegin: Bool
        var testDescription: String { text.debugDescription + (end ? " and the end" : "") }
    }

    private static let rows = [
        Row(text: "", received: false, head: false, phase: .waiting, mayBegin: false),
        Row(text: "HTTP/1.1 2", received: true, head: false, phase: .waiting, mayBegin: false),
        Row(text: "HTTP/1.1 100 Continue\r\n\r\n", received: true, head: false, phase: .waiting, mayBegin: false),
        Row(
            text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", received: true, head: true, phase: .receiving,
            mayBegin: false),
        Row(
            text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", received: true, head: true, phase: .receiving,
            mayBegin: true),
        Row(
            text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab", received: true, head: true,
            phase: .receiving, mayBegin: false),
        Row(
            text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", end: true, received: true, head: true,
            phase: .receiving, mayBegin: false),
        Row(
            text: "HTTP/1.1 200 OK\r\n\r\nab", end: true, received: true, head: true, phase: .receiving,
            mayBegin: false),
    ]

    @Test("each part of a response changes what may follow", arguments: rows)
    private func transitions(_ row: Row) throws {
        var state = try sent()
        try receive(row.text, end: row.end, in: &state)
        #expect(state.hasReceived == row.received && state.hasFinalHead == row.head)
        #expect(state.phase == row.phase && state.mayBegin == row.mayBegin)
        let waits = (state.waitsFirst(isGathering: false), state.waitsFirst(isGathering: true))
        #expect(waits == (!row.received, true))
    }

    @Test(
        "the end of the connection is an error of what was expected, or the end of the body",
        arguments: [
            ("", LoadError.Reason.connectionLost, LoadError.Phase.waiting), ("HTTP/1.1", .truncated, .waiting),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", .truncated, .receiving),
            ("HTTP/1.1 200 OK\r\n\r\na", nil, .receiving),
        ] as [(String, LoadError.Reason?, LoadError.Phase)])
    func ends(_ text: String, _ reason: LoadError.Reason?, _ phase: LoadError.Phase) throws {
        var state = try sent()
        var error: LoadError?
        do throws(LoadError) { try receive(text, end: true, in: &state) } catch let found { error = found }
        #expect(error?.reason == reason && error?.phase == (reason == nil ? nil : phase))
        #expect(state.phase == phase && !state.mayBegin)
    }

    @Test("an exchange begins where the one before has ended, and knows nothing of it") func nextExchange() throws {
        var state = try sent()
        try receive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n", in: &state)
        #expect(state.trailers["A"] == "b" && state.exchanges == 1)
        try send(&state)
        #expect(state.trailers.isEmpty && state.exchanges == 2 && !state.hasReceived && state.phase == .waiting)
    }

    @Test("a head that comes while the request is sent waits for its exchange") func earlyHead() throws {
        var state = try sent()
        let events = try receive("HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\n", in: &state)
        guard case .response(let head)? = events.first else { throw Unexpectedly("no head") }
        state.holdEarly(head)
        #expect(state.hasFinalHead && state.phase == .waiting && state.earlyStatus == .contentTooLarge)
        let taken = (state.takeEarly(), state.takeEarly())
        #expect(taken == (head, nil) && state.phase == .receiving && state.earlyStatus == nil)
    }

    @Test("after a request that was cut, or a refused login, no exchange begins") func lastExchange() throws {
        var state = try sent()
        state.authenticated()
        #expect(state.use == .authenticated)
        state.endUse()
        state.authenticated()
        try receive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", in: &state)
        #expect(state.use == .last && !state.mayBegin)
    }

    @Test("a forbidden order is an error, and changes nothing") func forbiddenOrders() throws {
        let illegal = WireViolation(.local, .illegalState, section: "RFC 9112 9.3")
        // A request in the middle of a response.
        var state = try sent()
        #expect(throws: illegal) { try state.begin() }
        try receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", in: &state)
        #expect(throws: illegal) { try state.begin() }
        #expect(state.exchanges == 1 && state.phase == .receiving)
        // A request after the peer's end.
        try receive("b", in: &state)
        state.receivedEnd()
        #expect(throws: illegal) { try state.begin() }
        // A response without a request.
        state = HTTP1State(HTTP1Codec(role: .client))
        #expect(throws: LoadError.self) { try receive("HTTP/1.1 200 OK\r\n\r\n", in: &state) }
        #expect(throws: illegal) { try state.begin() }
        // Anything after a fault.
        state = try sent()
        #expect(throws: LoadError.self) { try receive("HTTQ/1.1 200 OK\r\n\r\n", in: &state) }
        #expect(throws: LoadError.self) { try receive("HTTP/1.1 200 OK\r\n\r\n", in: &state) }
        #expect(throws: illegal) { try state.begin() }
        // A head that was not held.
        #expect(state.takeEarly() == nil && state.earlyStatus == nil)
    }

    @Test("the violations of an interim head are not returned again with the final head") func violations() throws {
        var state = try sent(isTolerant: true)
        let interim = "HTTP/1.1 103 Early Hints\nLink: </a>\n\n"
        let final = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        var reported: [[WireViolation.Code]] = []
        for event in try receive(interim + interim + final, in: &state) {
            switch event {
            case .informational(let head), .response(let head):
                #expect(head.violations.all.map(\.code) == [.bareLineFeed])
                reported.append(state.unreported(in: head).map(\.code))
            default: break
            }
        }
        #expect(reported == [[.bareLineFeed], [], []])
    }
}

extension HTTP1State {
    fileprivate var mayBegin: Bool { codec.reuse == .yes && allowsNext }
}
