// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
package import URLLoadingIO
import URLLoadingTesting

/// A name server on the loopback address, with a thread of its own. It gives one set of HTTPS records to every
/// question, as if all names were aliases of one.
package final class TestNameServer: Sendable {
    /// What the server does wrong.
    package enum Fault: Sendable, Hashable, CaseIterable {
        /// Answers with another id, to another question, cut in the middle, or with names that refer to themselves.
        case otherID, otherQuestion, cut, circle
        /// Answers nothing, or after half of a second.
        case silence, late
        /// Says that there is no such name, or that it does not answer.
        case noSuchName, refusal
        /// Answers in a datagram that the answer is too large, and over TCP not at all.
        case endlessStream
    }

    package let address: SocketAddress
    private let records: [[UInt8]]
    private let faults: Set<Fault>
    /// The faults come before the true answer, and not in its place.
    private let saysTruth: Bool
    private let usesStream: Bool
    private let state = Lock(State())

    private struct State: Sendable {
        var isStopped = false
        var names: [String] = []
        var ports: [UInt16] = []
        var ids: [UInt16] = []
        var streams = 0
    }

    /// - Parameters:
    ///   - records: the data of HTTPS records (RFC 9460 §2.2).
    ///   - saysTruth: whether the true answer follows wrong ones.
    ///   - usesStream: whether the true answer comes over TCP only.
    package init(
        _ records: [[UInt8]], faults: Set<Fault> = [], saysTruth: Bool = false, usesStream: Bool = false
    ) throws {
        (self.records, self.faults, self.saysTruth, self.usesStream) = (records, faults, saysTruth, usesStream)
        let (datagrams, streams, port) = try Self.sockets()
        address = .ipv4((127, 0, 0, 1), port: port)
        Thread.detachNewThread { [self] in serve(datagrams, streams) }
    }

    /// Returns sockets of one port. Another program may have a port of UDP's choice for TCP.
    private static func sockets() throws -> (datagrams: Int32, streams: Int32, port: UInt16) {
        for _ in 0..<32 {
            let (datagrams, port) = try DatagramSockets.bound()
            let streams = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var own = DatagramSockets.address(port)
            let isListening = withUnsafePointer(to: &own) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(streams, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 && listen(streams, 8) == 0
                }
            }
            if isListening { return (datagrams, streams, port) }
            close(streams)
            close(datagrams)
        }
        throw IOFailure(.system(EADDRINUSE), .listen)
    }

    package func stop() { state.withLock { $0.isStopped = true } }

    /// The names that were asked for, and the ports and ids of the questions.
    package var names: [String] { state.withLock { $0.names } }
    package var ports: [UInt16] { state.withLock { $0.ports } }
    package var ids: [UInt16] { state.withLock { $0.ids } }
    /// The number of questions over TCP.
    package var streams: Int { state.withLock { $0.streams } }

    // MARK: Serving

    private func serve(_ datagrams: Int32, _ streams: Int32) {
        var late: [(due: Int64, answer: [UInt8], client: sockaddr_in)] = []
        var open: [Int32] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while !state.withLock({ $0.isStopped }) {
            var waiting = ([datagrams, streams] + open).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&waiting, nfds_t(waiting.count), 2)
            while let (question, client) = DatagramSockets.receive(datagrams) {
                guard question.count >= 17 else { continue }
                note(question, client)
                for answer in answers(to: question) { DatagramSockets.send(answer, from: datagrams, to: client) }
                if faults.contains(.late) { late.append((Poller.now() + 500_000_000, truth(question), client)) }
            }
            let now = Poller.now()
            for item in late where item.due <= now {
                DatagramSockets.send(item.answer, from: datagrams, to: item.client)
            }
            late.removeAll { $0.due <= now }
            if waiting[1].revents != 0 {
                let client = accept(streams, nil, nil)
                if client >= 0 { open.append(client) }
            }
            for (index, client) in open.enumerated().reversed() {
                let count = recv(client, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard count >= 0 || errno != EAGAIN else { continue }
                guard count > 2 else {
                    close(client)
                    open.remove(at: index)
                    continue
                }
                state.withLock { $0.streams += 1 }
                guard !faults.contains(.endlessStream) else { continue }
                let answer = truth(Array(buffer[2..<count]))
                let message = [UInt8(answer.count >> 8), UInt8(answer.count & 0xFF)] + answer
                // In two pieces.
                _ = Glibc.send(client, Array(message[..<5]), 5, Int32(MSG_NOSIGNAL))
                _ = Glibc.send(client, Array(message[5...]), message.count - 5, Int32(MSG_NOSIGNAL))
            }
        }
        for descriptor in open + [datagrams, streams] { close(descriptor) }
    }

    private func note(_ question: [UInt8], _ client: sockaddr_in) {
        var (labels, rest) = ([String](), question[12...])
        while let length = rest.popFirst(), length > 0 {
            labels.append(String(decoding: rest.prefix(Int(length)), as: UTF8.self))
            rest = rest.dropFirst(Int(length))
        }
        let (name, id) = (labels.joined(separator: "."), UInt16(question[0]) << 8 | UInt16(question[1]))
        state.withLock {
            $0.names.append(name)
            $0.ports.append(UInt16(bigEndian: client.sin_port))
            $0.ids.append(id)
        }
    }

    // MARK: Answers

    /// The datagrams that answer a question.
    private func answers(to question: [UInt8]) -> [[UInt8]] {
        let truth = truth(question)
        var answers: [[UInt8]] = []
        if faults.contains(.otherID) { answers.append([truth[0] ^ 1] + truth[1...]) }
        if faults.contains(.otherQuestion) {
            var other = truth
            // A letter of the name.
            other[13] ^= 1
            answers.append(other)
        }
        if faults.contains(.cut) { answers.append(Array(truth[..<(truth.count / 2)])) }
        if faults.contains(.circle) {
            var other = self.head(question, flags: 0x8180, count: 1)
            other += [0xC0, UInt8(other.count)]
            other += [0, 65, 0, 1, 0, 0, 0, 9, 0, 0]
            answers.append(other)
        }
        if faults.contains(.noSuchName) { answers.append(head(question, flags: 0x8183, count: 0)) }
        if faults.contains(.refusal) { answers.append(head(question, flags: 0x8185, count: 0)) }
        guard faults.isEmpty || saysTruth || faults.contains(.endlessStream) else { return answers }
        let isCut = usesStream || faults.contains(.endlessStream)
        return answers + [isCut ? head(question, flags: 0x8380, count: 0) : truth]
    }

    private func truth(_ question: [UInt8]) -> [UInt8] {
        var message = head(question, flags: 0x8180, count: UInt8(records.count))
        for record in records {
            // The name of the question, the type, the class, 600 seconds, the length.
            message += [0xC0, 12, 0, 65, 0, 1, 0, 0, 2, 88] as [UInt8]
            message += [UInt8(record.count >> 8), UInt8(record.count & 0xFF)]
            message += record
        }
        return message
    }

    /// The beginning of an answer, with the question.
    private func head(_ question: [UInt8], flags: UInt16, count: UInt8) -> [UInt8] {
        let end = (question[12...].firstIndex(of: 0) ?? 12) + 5
        var message = Array(question[..<2])
        message += [UInt8(flags >> 8), UInt8(flags & 0xFF)]
        message += [0, 1, 0, count, 0, 0, 0, 0]
        message += question[12..<min(end, question.count)]
        return message
    }
}

extension [UInt8] {
    /// The data of an HTTPS record that offers protocols (RFC 9460 §7.1).
    /// - Parameter target: empty for the name itself.
    package static func httpsRecord(
        priority: UInt8 = 1, target: String = "", _ protocols: [String], port: UInt16? = nil
    ) -> [UInt8] {
        func counted(_ text: some StringProtocol) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }
        var record: [UInt8] = [0, priority]
        record += target.split(separator: ".").flatMap(counted)
        record.append(0)
        let list = protocols.flatMap(counted)
        if !list.isEmpty {
            record += [0, 1, 0, UInt8(list.count)]
            record += list
        }
        if let port { record += [0, 3, 0, 2, UInt8(port >> 8), UInt8(port & 0xFF)] }
        return record
    }
}
