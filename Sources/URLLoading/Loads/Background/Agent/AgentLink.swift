// SPDX-License-Identifier: Apache-2.0

// In this folder: finding, starting and talking to the background agent

// The program's side of a connection to the background agent.

import Synchronization
package import URLLoadingIO
package import URLLoadingWire

/// A connection to the agent after its welcome message: requests with their answers, and the agent's announcements.
package final class AgentLink: Sendable {
    private struct State: Sendable {
        var lastID: UInt32 = 0
        var waiting: [UInt32: CheckedContinuation<AgentMessage, any Error>] = [:]
        var isOver = false
    }
    private let channel: AgentChannel
    private let state = Lock(State())
    package let welcome: AgentMessage.Welcome
    /// The agent's events, progress and the end of missed events, in order; ends with the connection. For one task.
    package let announcements: AsyncStream<AgentMessage>

    private init(
        _ channel: AgentChannel, _ welcome: AgentMessage.Welcome,
        _ announcements: (stream: AsyncStream<AgentMessage>, continuation: AsyncStream<AgentMessage>.Continuation)
    ) {
        self.channel = channel
        self.welcome = welcome
        self.announcements = announcements.stream
        Task { [channel, weak self] in
            while let incoming = (try? await channel.receive()) ?? nil {
                switch incoming.message {
                case .event, .progress, .finishedEvents, .challenge:
                    announcements.continuation.yield(incoming.message)
                default: self?.answer(incoming.id, incoming.message)
                }
            }
            announcements.continuation.finish()
            self?.end()
        }
    }

    deinit { channel.close() }

    /// Connects to the agent, and exchanges the first messages.
    ///
    /// An agent that only speaks older versions is asked to hand over: it stops its transfers at synchronised offsets
    /// and exits. The failure is then `unreachable`, and the next agent continues the transfers.
    /// - Parameters:
    ///   - path: the path of the agent's socket.
    ///   - versions: the versions of the protocol that this program speaks.
    ///   - patience: how long to wait for the agent's first message.
    /// - Throws: ``AgentFailure``.
    package static func open(
        _ path: String, program: String = StorageFolders.program, versions: ClosedRange<Int64> = AgentVersions.own,
        patience: Duration = .seconds(30)
    ) async throws(AgentFailure) -> AgentLink {
        let channel: AgentChannel
        do throws(IOFailure) {
            channel = AgentChannel(try await LocalSocket.connect(to: path, timeout: patience))
        } catch {
            throw AgentFailure(.unreachable, "\(path): \(error.words)")
        }
        guard let peer = try? channel.peer(), peer.user == LocalPeer.ownUser || peer.user == 0 else {
            channel.close()
            throw AgentFailure(.refused, "\(path): another user's process listens at this socket")
        }
        // The socket of an agent that is stopped accepts connections, and nothing is answered.
        let isLate = Lock(false)
        let limit = Task {
            try await Task.sleep(for: patience)
            isLate.withLock { $0 = true }
            channel.close()
        }
        defer { limit.cancel() }
        let hello = AgentMessage.Hello(lowest: versions.lowerBound, highest: versions.upperBound, program: program)
        channel.send(.hello(hello))
        let answer: AgentChannel.Incoming?
        do throws(WireViolation) { answer = try await channel.receive() } catch {
            throw AgentFailure(.refused, "\(path): \(error)")
        }
        switch answer?.message {
        case .welcome(let welcome): return AgentLink(channel, welcome, AsyncStream.makeStream(of: AgentMessage.self))
        case .refused(let refusal) where refusal.highest > 0 && refusal.highest < versions.lowerBound:
            limit.cancel()
            await handOver(channel)
            throw AgentFailure(
                .unreachable, "\(path): \(refusal.detail); it was asked to make room for a newer url-loading-agent")
        case .refused(let refusal): throw AgentFailure(refusal)
        case nil where isLate.withLock(\.self):
            throw AgentFailure(.refused, "\(path): the agent has not answered for \(patience)")
        case nil: throw AgentFailure(.unreachable, "\(path): the agent ended the connection")
        default: throw AgentFailure(.refused, "\(path): the agent sent an unexpected message")
        }
    }

    /// Asks an older agent to exit, and waits for that. It stops its transfers first, and has time for each of them.
    private static func handOver(_ channel: AgentChannel) async {
        let limit = Task {
            try await Task.sleep(for: .seconds(600))
            channel.close()
        }
        defer { limit.cancel() }
        channel.send(.handOver, id: 1)
        // The end of the connection is the end of the agent.
        while let incoming = try? await channel.receive() {
            if case .refused = incoming.message { return channel.close() }
        }
    }

    package func close() { channel.close() }

    /// Sends a request, and waits for its answer.
    /// - Throws: ``AgentFailure``: `unreachable` if the connection ended before the answer; `refused` or another code
    ///   if the agent refused.
    package func request(_ message: AgentMessage, files: [PassedFile] = []) async throws(AgentFailure) -> AgentMessage {
        let answer: AgentMessage
        do {
            answer = try await withCheckedThrowingContinuation { continuation in
                let id = state.withLock { state -> UInt32? in
                    guard !state.isOver else { return nil }
                    state.lastID = state.lastID == .max ? 1 : state.lastID + 1
                    state.waiting[state.lastID] = continuation
                    return state.lastID
                }
                guard let id else { return continuation.resume(throwing: AgentFailure.lost) }
                switch channel.send(message, id: id, files: files) {
                case .queued: break
                case .tooLarge: fail(id, .tooLarge)
                case .over: fail(id, .lost)
                }
            }
        } catch { throw error as? AgentFailure ?? .lost }
        if case .refused(let refusal) = answer { throw AgentFailure(refusal) }
        return answer
    }

    private func answer(_ id: UInt32, _ message: AgentMessage) {
        state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(returning: message)
    }

    private func fail(_ id: UInt32, _ failure: AgentFailure) {
        state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(throwing: failure)
    }

    private func end() {
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.resume(throwing: AgentFailure.lost) }
    }
}

/// The reason why the background agent did not carry out a request.
package struct AgentFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package struct Code: Sendable, Equatable {
        package let name: String
        package init(_ name: String) { self.name = name }

        /// The agent cannot be connected to, or the connection ended.
        package static let unreachable = Code("unreachable")
        /// No agent can be found or started.
        package static let noAgent = Code("noAgent")
        /// The agent refuses the request.
        package static let refused = Code("refused")
        /// Another running process uses the session identifier.
        package static let identifierInUse = Code("identifierInUse")
        /// The program and the agent have no version of the protocol, or of the journal, in common.
        package static let version = Code("version")
        /// The agent cannot write its journal.
        package static let journal = Code("journal")
        package static let unknownTransfer = Code("unknownTransfer")
        /// The calling task was cancelled.
        package static let cancelled = Code("cancelled")
    }
    package let code: Code
    package let detail: String
    /// The process that holds the requested resource; 0 without one.
    package let process: Int64

    package init(_ code: Code, _ detail: String, process: Int64 = 0) {
        (self.code, self.detail, self.process) = (code, detail, process)
    }

    init(_ refusal: AgentMessage.Refusal) { self.init(Code(refusal.code), refusal.detail, process: refusal.process) }

    static let lost = AgentFailure(.unreachable, "the connection to the background agent ended")
    static let tooLarge = AgentFailure(
        .refused,
        "the request is larger than \(AgentFrame.largest >> 20) MiB, with its fields and the resume token; "
            + "a token with its content is for downloads outside of background sessions")

    package var refusal: AgentMessage.Refusal { .init(code: code.name, detail: detail, process: process) }
    package var description: String { "\(code.name): \(detail)" }
}
