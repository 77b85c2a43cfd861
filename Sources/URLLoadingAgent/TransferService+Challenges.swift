// SPDX-License-Identifier: Apache-2.0

// Challenges of transfers: put to the connected program, or kept until it comes back.

import URLLoading
import URLLoadingWire

/// A challenge that was put to a program.
struct PendingChallenge: Sendable {
    let transfer: String
    let answered: CheckedContinuation<TransferAnswer?, Never>
}

extension TransferService {
    /// Puts a challenge to the program of a transfer, and waits for its answer.
    /// - Returns: `nil` if the program is away, leaves, or does not answer challenges.
    func ask(_ challenge: TransferChallenge, of id: String) async -> TransferAnswer? {
        let answer = await put(challenge, of: id)
        switch answer {
        case nil, .undecided?:
            // The next program to attach is asked again.
            let attachments = (transfers[id]?.identifier).flatMap { owners[$0]?.attachments }
            transfers[id]?.unansweredBy = attachments
        case .noMethod?: forgetDelegate(of: id)
        default: break
        }
        return answer
    }

    private func put(_ challenge: TransferChallenge, of id: String) async -> TransferAnswer? {
        guard let name = transfers[id]?.identifier, let client = owners[name]?.client, client.answers else {
            return nil
        }
        lastChallenge += 1
        let number = lastChallenge
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                challenges[number] = PendingChallenge(transfer: id, answered: continuation)
                let record = TransferCoding.encode(challenge)
                let isSent =
                    !Task.isCancelled
                    && client.channel.send(.challenge(.init(number: number, transfer: id, record: record))) == .queued
                if !isSent { settle(number, nil) }
            }
        } onCancel: {
            Task { await self.settle(number, nil) }
        }
    }

    private func settle(_ number: Int64, _ answer: TransferAnswer?) {
        challenges.removeValue(forKey: number)?.answered.resume(returning: answer)
    }

    /// Passes on the program's answer.
    /// - Returns: false if no challenge waits for it any more.
    func answer(_ argument: [UInt8], of name: String) -> Bool {
        guard let numbered = TransferCoding.decode(NumberedAnswer.self, argument),
            let asked = challenges[numbered.number], transfers[asked.transfer]?.identifier == name
        else { return false }
        if numbered.answer != .undecided { owners[name]?.wakes.acknowledged() }
        settle(numbered.number, numbered.answer)
        return true
    }

    /// Parks the transfers that wait for an answer of a program that has left.
    func withdrawChallenges(of name: String) {
        for (number, asked) in challenges where transfers[asked.transfer]?.identifier == name { settle(number, nil) }
    }

    /// Parks all transfers that wait for an answer.
    func withdrawChallenges() { for number in challenges.keys { settle(number, nil) } }

    /// Repeats the requests whose challenges wait for the program: it has come back.
    func unpark(_ name: String) {
        guard !isShared else { return _ = Task { await claimParked(name) } }
        for transfer in transfers where transfer.identifier == name {
            let id = transfer.id
            guard case .parked = transfer.state.phase else { continue }
            if !transfer.state.isPaused { owners[name]?.visit.unpark(id) }
            input(.answered, to: id)
        }
        schedule()
    }

    /// Parks a transfer, unless another program has attached since the challenge.
    func park(_ id: String, _ question: String) {
        guard let transfer = transfers[id], let owner = owners[transfer.identifier] else { return }
        log("transfer \(id) waits for its program: \(question)")
        let isAttached = owner.client?.answers == true
        transfers[id]?.isRefused = isAttached && owner.attachments == transfer.unansweredBy
        input(.park(question: question), to: id)
        guard isAttached, owner.attachments != transfer.unansweredBy else { return }
        if isShared { Task { await claimParked(transfer.identifier) } } else { input(.answered, to: id) }
    }

    /// Notes that the program's delegate has no method for challenges: they get default handling, for which the program
    /// need not run.
    private func forgetDelegate(of id: String) {
        guard let name = transfers[id]?.identifier else { return }
        for var transfer in transfers
        where transfer.identifier == name && transfer.order.challenges == .delegate {
            transfer.order.challenges = nil
            transfers[transfer.id] = transfer
            save([transfer.orderUpdate])
        }
    }

    /// Whether a transfer of the identifier waits for the program.
    func hasParked(_ name: String) -> Bool {
        transfers.contains { transfer in
            guard transfer.identifier == name, !transfer.state.isPaused else { return false }
            if case .parked = transfer.state.phase { return true }
            return false
        }
    }
}
