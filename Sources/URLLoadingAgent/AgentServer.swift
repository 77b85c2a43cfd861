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
                log("a connection cannot be accepted: \(error.code)")
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
            if try await welcome(client) {
                while let incoming = try await client.channel.receive() {
                    await service.receive(incoming, from: client)
                }
            }
        } catch { log("process \(client.process) violated the protocol: \(error)") }
        await service.disconnected(client)
    }

    private func welcome(_ client: AgentClient) async throws(WireViolation) -> Bool {
        guard let first = try await client.channel.receive(), case .hello(let hello) = first.message else {
            return false
        }
        guard let version = AgentVersions.common(hello) else {
            let detail =
                "this agent speaks versions \(AgentVersions.lowest) to \(AgentVersions.highest), the program "
                + "\(hello.lowest) to \(hello.highest)"
            client.channel.send(.refused(AgentFailure(.version, detail).refusal), id: first.id)
            client.channel.finish()
            // A newer program may still ask this agent to hand over.
            return true
        }
        client.channel.send(
            .welcome(
                .init(
                    version: version, process: Int64(ProgramEnvironment.process), survival: survival, manner: manner)),
            id: first.id)
        return true
    }
}
