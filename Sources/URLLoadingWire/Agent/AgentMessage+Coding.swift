// SPDX-License-Identifier: Apache-2.0

// Kinds and tags of the wire format. A number never gets a second meaning.

private enum Kind {
    static let hello: UInt16 = 1
    static let welcome: UInt16 = 2
    static let refused: UInt16 = 3
    static let done: UInt16 = 4
    static let attach: UInt16 = 5
    static let submit: UInt16 = 6
    static let list: UInt16 = 7
    static let page: UInt16 = 8
    static let command: UInt16 = 9
    static let listen: UInt16 = 10
    static let event: UInt16 = 11
    static let acknowledge: UInt16 = 12
    static let progress: UInt16 = 13
    static let finishedEvents: UInt16 = 14
    static let status: UInt16 = 15
    static let report: UInt16 = 16
    static let handOver: UInt16 = 17
    static let detach: UInt16 = 18
    static let identifiers: UInt16 = 19
    static let challenge: UInt16 = 20
    static let fleet: UInt16 = 21
    static let drain: UInt16 = 22
}

extension AgentMessage {
    /// Returns the message as a frame.
    /// - Parameters:
    ///   - id: the id of the request, or of the request that is answered; 0 for neither.
    ///   - descriptorCount: the number of descriptors sent with the frame.
    package func frame(id: UInt32, descriptorCount: Int = 0) -> AgentFrame {
        var fields = AgentFields()
        let kind = write(to: &fields)
        return AgentFrame(kind: kind, id: id, descriptorCount: descriptorCount, fields: fields)
    }

    private func write(to fields: inout AgentFields) -> UInt16 {
        switch self {
        case .hello(let hello):
            fields.set(1, integer: hello.lowest)
            fields.set(2, integer: hello.highest)
            fields.set(3, text: hello.program)
            return Kind.hello
        case .attach(let attachment):
            fields.set(1, text: attachment.identifier)
            fields.set(2, bytes: attachment.settings)
            fields.set(3, bytes: attachment.secrets)
            if attachment.observes { fields.set(4, integer: 1) }
            if attachment.answers { fields.set(5, integer: 1) }
            if attachment.wasWoken { fields.set(6, integer: 1) }
            return Kind.attach
        case .submit(let submission):
            fields.set(1, text: submission.transfer)
            fields.set(2, bytes: submission.order)
            fields.set(3, bytes: submission.secrets)
            return Kind.submit
        case .list(let number):
            fields.set(1, integer: number)
            return Kind.list
        case .command(let command):
            fields.set(1, text: command.transfer)
            fields.set(2, text: command.verb)
            fields.set(3, bytes: command.argument)
            return Kind.command
        case .acknowledge(let sequence):
            fields.set(1, integer: sequence)
            return Kind.acknowledge
        case .detach: return Kind.detach
        case .listen: return Kind.listen
        case .status: return Kind.status
        case .identifiers: return Kind.identifiers
        case .handOver: return Kind.handOver
        case .fleet: return Kind.fleet
        case .drain: return Kind.drain
        case .unknown(let kind): return kind
        default: return writeAnswer(to: &fields)
        }
    }

    private func writeAnswer(to fields: inout AgentFields) -> UInt16 {
        switch self {
        case .welcome(let welcome):
            fields.set(1, integer: welcome.version)
            fields.set(2, integer: welcome.process)
            fields.set(3, text: welcome.survival)
            fields.set(4, text: welcome.manner)
            return Kind.welcome
        case .refused(let refusal):
            fields.set(1, text: refusal.code)
            fields.set(2, text: refusal.detail)
            fields.set(3, integer: refusal.process)
            if refusal.highest > 0 { fields.set(4, integer: refusal.highest) }
            return Kind.refused
        case .page(let page):
            for record in page.records { fields.set(1, bytes: record) }
            if let next = page.next { fields.set(2, integer: next) }
            return Kind.page
        case .event(let event):
            fields.set(1, integer: event.sequence)
            fields.set(2, bytes: event.record)
            return Kind.event
        case .progress(let progress):
            fields.set(1, text: progress.transfer)
            fields.set(2, integer: progress.received)
            fields.set(3, integer: progress.expectedToReceive)
            fields.set(4, integer: progress.sent)
            fields.set(5, integer: progress.expectedToSend)
            if !progress.response.isEmpty { fields.set(6, bytes: progress.response) }
            return Kind.progress
        case .report(let text):
            fields.set(1, text: text)
            return Kind.report
        case .challenge(let challenge):
            fields.set(1, integer: challenge.number)
            fields.set(2, text: challenge.transfer)
            fields.set(3, bytes: challenge.record)
            return Kind.challenge
        case .finishedEvents: return Kind.finishedEvents
        default: return Kind.done
        }
    }

    /// Reads the message of a frame. An unknown kind becomes ``unknown(kind:)``.
    /// - Throws: ``WireViolation/Code/malformedAgentMessage``.
    package init(_ frame: AgentFrame) throws(WireViolation) {
        let fields = frame.fields
        switch frame.kind {
        case Kind.hello:
            self = .hello(
                Hello(lowest: try fields.number(1), highest: try fields.number(2), program: try fields.words(3)))
        case Kind.attach:
            self = .attach(
                Attachment(
                    identifier: try fields.words(1), settings: try fields.blob(2), secrets: fields.bytes(3) ?? [],
                    observes: try fields.integer(4) == 1, answers: try fields.integer(5) == 1,
                    wasWoken: try fields.integer(6) == 1))
        case Kind.submit:
            self = .submit(
                Submission(transfer: try fields.words(1), order: try fields.blob(2), secrets: fields.bytes(3) ?? []))
        case Kind.list: self = .list(after: try fields.number(1))
        case Kind.command:
            self = .command(
                Command(transfer: try fields.words(1), verb: try fields.words(2), argument: fields.bytes(3) ?? []))
        case Kind.acknowledge: self = .acknowledge(sequence: try fields.number(1))
        case Kind.detach: self = .detach
        case Kind.listen: self = .listen
        case Kind.status: self = .status
        case Kind.identifiers: self = .identifiers
        case Kind.handOver: self = .handOver
        case Kind.fleet: self = .fleet
        case Kind.drain: self = .drain
        default: self = try Self.answer(frame.kind, fields)
        }
    }

    private static func answer(_ kind: UInt16, _ fields: AgentFields) throws(WireViolation) -> AgentMessage {
        switch kind {
        case Kind.welcome:
            return .welcome(
                Welcome(
                    version: try fields.number(1), process: try fields.number(2), survival: try fields.words(3),
                    manner: try fields.words(4)))
        case Kind.refused:
            return .refused(
                Refusal(
                    code: try fields.words(1), detail: try fields.words(2), process: try fields.integer(3) ?? 0,
                    highest: try fields.integer(4) ?? 0))
        case Kind.page: return .page(Page(records: fields.all(1), next: try fields.integer(2)))
        case Kind.event: return .event(Event(sequence: try fields.number(1), record: try fields.blob(2)))
        case Kind.progress:
            return .progress(
                Progress(
                    transfer: try fields.words(1), received: try fields.number(2),
                    expectedToReceive: try fields.number(3), sent: try fields.number(4),
                    expectedToSend: try fields.number(5), response: fields.bytes(6) ?? []))
        case Kind.report: return .report(text: try fields.words(1))
        case Kind.challenge:
            return .challenge(
                Challenge(
                    number: try fields.number(1), transfer: try fields.words(2), record: try fields.blob(3)))
        case Kind.finishedEvents: return .finishedEvents
        case Kind.done: return .done
        default: return .unknown(kind: kind)
        }
    }
}

extension AgentFields {
    fileprivate func number(_ tag: UInt16) throws(WireViolation) -> Int64 {
        guard let number = try integer(tag) else { throw .remote(.malformedAgentMessage, "") }
        return number
    }
    fileprivate func words(_ tag: UInt16) throws(WireViolation) -> String {
        guard let text = try text(tag) else { throw .remote(.malformedAgentMessage, "") }
        return text
    }
    fileprivate func blob(_ tag: UInt16) throws(WireViolation) -> [UInt8] {
        guard let bytes = bytes(tag) else { throw .remote(.malformedAgentMessage, "") }
        return bytes
    }
}
