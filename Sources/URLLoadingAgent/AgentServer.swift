// SPDX-License-Identifier: Apache-2.0

// Serves the programs that connect.

import URLLoading
import URLLoadingIO
import URLLoadingWire

struct AgentServer: Sendable {
    let service: TransferService
    let survival: String
    let manner: String
    let log: @Sendable (String) -> Void

    init(
        _ service: TransferService, survival: String, manner: String, log: @escaping @Sendable (String) -> Void
    ) {
        (self.service, self.survival, self.manner, self.log) = (service, survival, manner, log)
    }

    /// Accepts programs until the token is stopped.
    func serve(_ listener: LocalListener, _ token: StopToken) async {
        while true {
            do throws(IOFailure) { accept(try await listener.accept(token)) } catch {
                guard token.stopReason == nil else { return }
                // Usually no descriptor is left; wait and retry.
                log("a connection cannot be accepted: \(error.words)")
                try? await Poller.shared.sleep(until: Poller.now() + 100_000_000, token)
            }
        }
    }

    /// Begins to serve a connection.
    func accept(_ socket: LocalSocket) {
        let channel = AgentChannel(socket)
        guard let peer = try? channel.peer(), peer.user == LocalPeer.ownUser else {
            log("another user tried to connect")
            return channel.close()
        }
        Task { await converse(AgentClient(channel, process: peer.process)) }
    }

    private func converse(_ client: AgentClient) async {
        await service.connected()
        defer { client.channel.close() }
        do throws(WireViolation) {
            if let isCompatible = try await handshake(client) {
                while let incoming = try await client.channel.receive() {
                    // A newer program that has no version in common may ask this agent to hand over.
                    if isCompatible || incoming.message == .handOver {
                        await service.receive(incoming, from: client)
                    } else {
                        client.channel.close()
                    }
                }
            }
        } catch { log("process \(client.process) violated the protocol: \(error)") }
        await service.disconnected(client)
    }

    /// Tells programs why this agent cannot serve them.
    /// - Parameter nanoseconds: how long.
    static func refuse(_ listener: LocalListener, _ failure: AgentFailure, for nanoseconds: Int64) async {
        let token = StopToken()
        let accepting = Task {
            while let socket = try? await listener.accept(token) {
                let channel = AgentChannel(socket)
                guard let peer = try? channel.peer(), peer.user == LocalPeer.ownUser else { continue }
                Task {
                    guard let first = (try? await channel.receive()) ?? nil else { return }
                    channel.send(.refused(failure.refusal), id: first.id)
                    channel.finish()
                    while (try? await channel.receive()) != nil {}
                }
            }
        }
        try? await Poller.shared.sleep(until: Poller.now() + nanoseconds, .never)
        token.stop(.cancelled)
        await accepting.value
    }

    /// Answers the first message of a program.
    /// - Returns: whether they have a version in common; `nil` for another first message.
    private func handshake(_ client: AgentClient) async throws(WireViolation) -> Bool? {
        guard let first = try await client.channel.receive(), case .hello(let hello) = first.message else {
            return nil
        }
        guard let version = AgentVersions.common(hello) else {
            let detail =
                "this agent speaks versions \(AgentVersions.lowest) to \(AgentVersions.highest), the program "
                + "\(hello.lowest) to \(hello.highest)"
            var refusal = AgentFailure(.version, detail).refusal
            refusal.highest = AgentVersions.highest
            client.channel.send(.refused(refusal), id: first.id)
            return false
        }
        client.channel.send(
            .welcome(
                .init(
                    version: version, process: Int64(ProgramEnvironment.process), survival: survival, manner: manner)),
            id: first.id)
        return true
    }
}
