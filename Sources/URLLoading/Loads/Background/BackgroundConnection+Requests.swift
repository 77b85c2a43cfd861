// SPDX-License-Identifier: Apache-2.0

// The requests of the program to the agent.

package import URLLoadingIO
import URLLoadingWire

extension BackgroundConnection {
    /// Submits a transfer; returns when the agent has stored it on disk.
    package func submit(
        _ id: String, _ order: TransferOrder, _ secrets: TransferSecrets, files: [PassedFile] = []
    ) async throws(AgentFailure) {
        await untilListed()
        let submission = AgentMessage.Submission(
            transfer: id, order: TransferCoding.encode(order), secrets: TransferCoding.encode(secrets))
        let size = submission.order.count + submission.secrets.count
        await untilRoom()
        submittedBytes += size
        defer { makeRoom(size) }
        _ = try await request(.submit(submission), files: files)
    }

    /// The bytes of unanswered submissions from which on others wait: the connection queues no more than a few times as
    /// many (``AgentChannel/send(_:id:files:)``).
    private static let mostSubmitted = 4 << 20

    private func untilRoom() async {
        guard submittedBytes >= Self.mostSubmitted || !crowdedOut.isEmpty else { return }
        await withCheckedContinuation { crowdedOut.append($0) }
    }

    private func makeRoom(_ size: Int) {
        submittedBytes -= size
        guard submittedBytes < Self.mostSubmitted, !crowdedOut.isEmpty else { return }
        crowdedOut.removeFirst().resume()
    }

    /// Submits the transfer of a task, which then waits for its end with ``end(of:progress:decide:)``.
    package func submitOwn(_ id: String, _ order: TransferOrder, _ secrets: TransferSecrets) async throws(AgentFailure)
    {
        // Before the submission: the event may precede the wait for it.
        change(id) { $0.recipient = .task }
        do throws(AgentFailure) { try await submit(id, order, secrets) } catch {
            change(id) { $0.recipient = .handler }
            throw error
        }
    }

    /// Returns the transfers of earlier programs. Submissions of this program wait until then.
    package func earlierTransfers() async throws(AgentFailure) -> [TransferRecord] {
        defer { releaseSubmissions() }
        return try await transfers()
    }

    private func untilListed() async {
        guard waitingSubmissions != nil else { return }
        await withCheckedContinuation { waitingSubmissions?.append($0) }
    }

    func releaseSubmissions() {
        let waiting = waitingSubmissions.take() ?? []
        for submission in waiting { submission.resume() }
    }

    /// Makes the handler receive the event of a transfer although a task waits for it: see ``pass(_:)``.
    package func adopt(_ id: String) {
        change(id) { $0.recipient = .adoptedTask }
    }

    /// Passes an event from the handler to the adopted task of its transfer.
    package func pass(_ event: PendingEvent) {
        change(event.record.id) { $0.passOn(event) }?.resume(returning: .success(event))
    }

    /// Forgets an adopted task.
    package func abandon(_ id: String) {
        change(id) { $0.abandon() }
    }

    package func transfers() async throws(AgentFailure) -> [TransferRecord] {
        var decoding: [Task<[TransferRecord], Never>] = []
        var next: Int64? = 0
        while let after = next, case .page(let page) = try await request(.list(after: after)) {
            // The agent encodes the next page meanwhile, and this actor passes events on.
            decoding.append(
                Task { @concurrent in page.records.compactMap { TransferCoding.decode(TransferRecord.self, $0) } })
            next = page.next
        }
        var records: [TransferRecord] = []
        for page in decoding { records += await page.value }
        return records
    }

    /// Returns the identifiers of all programs that have transfers.
    package func identifiers() async throws(AgentFailure) -> [String] {
        guard case .report(let text) = try await request(.identifiers) else { return [] }
        return text.split(separator: "\n").map(String.init)
    }

    package func command(_ id: String, _ verb: String, _ argument: [UInt8] = []) async throws(AgentFailure) {
        _ = try await request(.command(.init(transfer: id, verb: verb, argument: argument)))
    }

    /// Returns the agent's welcome message, which describes the agent.
    package func welcome() async throws(AgentFailure) -> AgentMessage.Welcome {
        try await connected { link throws(AgentFailure) in link.welcome }
    }

    package func acknowledge(_ sequence: Int64) async throws(AgentFailure) {
        // Without an acknowledgement the agent sends the event again, on its next connection.
        defer {
            taken.remove(sequence)
            release(sequence)
        }
        _ = try await request(.acknowledge(sequence: sequence))
    }
}
