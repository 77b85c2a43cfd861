// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoading
import URLLoadingIO

/// The recorded progress of a transfer, from which an attempt continues.
struct TransferProgress: Codable, Sendable, Equatable {
    /// The resume token of a download (``ResumeToken/data``).
    var resumption: Data?
    /// The token of an upload (``UploadToken/text``).
    var uploadToken: String?
    /// The response to the attempt that is resumed.
    var response: TransferResponse?
    var received: Int64 = 0
    var expectedToReceive: Int64?
    var sent: Int64 = 0
    var expectedToSend: Int64?
    /// The agent that writes the part of a download; `nil` if none does, because its attempt has ended in order.
    var writer: String?
}

/// A transfer in the agent's memory.
struct Transfer: Sendable {
    let id: String
    /// The claim under which the agent changes the transfer; ``TransferClaim/none`` before the journal has accepted it.
    var claim: TransferClaim
    let identifier: String
    var order: TransferOrder
    let secrets: TransferSecrets
    var state: TransferState
    var progress = TransferProgress()
    /// Whether its event is queued for the journal; the transfer then leaves the agent's memory.
    var isAnnounced = false

    /// The count of the identifier's attachments (``TransferService/Owner/attachments``) when a challenge was not
    /// answered.
    var unansweredBy: Int?
    /// Whether the transfer is parked because the attached program was asked and has not answered.
    var isRefused = false

    /// The host of the URL, by which connections are limited.
    let host: String

    var number: Int64 { claim.number }

    /// Whether the request does no harm if it is sent again: it is idempotent, or its upload is continued.
    var mayRepeat: Bool { order.isIdempotent || progress.uploadToken != nil }

    /// Whether an attempt can be ended and repeated without harm and without loss of progress.
    var isResumable: Bool {
        guard mayRepeat else { return false }
        return switch order.kind {
        case .download: progress.resumption != nil || progress.received == 0
        case .upload: progress.uploadToken != nil || progress.sent == 0
        }
    }

    /// How far it is, as an error says it.
    var place: LoadError.Phase {
        switch state.phase {
        case .running where progress.received > 0: .receiving
        case .running where progress.sent > 0: .sending
        case .parked: .deciding
        default: .waiting
        }
    }

    var record: TransferRecord {
        let shown = state.shown
        var record = TransferRecord(id: id, number: number, order: order, state: shown.state)
        (record.reason, record.until, record.outcome) = (shown.reason, shown.until, shown.outcome)
        (record.received, record.expectedToReceive) = (progress.received, progress.expectedToReceive)
        (record.sent, record.expectedToSend) = (progress.sent, progress.expectedToSend)
        record.attempts = state.attempts
        return record
    }

    /// The row of a new transfer.
    /// - Parameter secrets: the encoded secrets.
    func row(_ secrets: [UInt8]) -> JournaledTransfer {
        JournaledTransfer(
            claim: claim, id: id, identifier: identifier, order: TransferCoding.encode(order),
            state: TransferCoding.encode(state), progress: TransferCoding.encode(progress), secrets: secrets,
            terms: JournaledTerms(
                host: host, priority: order.priority, isDiscretionary: order.isDiscretionary, affinity: order.affinity,
                standing: standing))
    }

    /// Which agent has to do with the transfer next.
    var standing: TransferStanding {
        switch state.phase {
        case .running, .placing, .finished, .delivered: return .working
        case .parked where isRefused && !state.isPaused: return .refused
        case .parked: return .none(isParked: !state.isPaused)
        case .queued, .waiting:
            guard !state.isPaused else { return .none(isParked: false) }
            guard let wait = state.wait else { return .ready }
            let end = wait.end(SystemBoot.identity)
            return .later(max(0, end.left(wall: SystemTime.wall, boot: SystemTime.boot)))
        }
    }

    /// The journal change for the order of the transfer.
    var orderUpdate: JournalChange {
        .order(claim, TransferCoding.encode(order), priority: order.priority)
    }

    /// The journal change for the variable part of the transfer.
    var update: JournalChange {
        let standing = standing
        var progress = progress
        if standing != .working { progress.writer = nil }
        return .update(
            claim, state: TransferCoding.encode(state), progress: TransferCoding.encode(progress), standing: standing)
    }

    init(
        id: String, claim: TransferClaim = .none, identifier: String, order: TransferOrder, secrets: TransferSecrets
    ) {
        (self.id, self.claim, self.identifier, self.order) = (id, claim, identifier, order)
        self.secrets = secrets.sharing(order)
        host = Self.host(of: secrets)
        state = TransferState(notBefore: order.earliestBegin)
    }

    /// Decodes a recorded transfer; fails if it cannot be read.
    init?(_ row: JournaledTransfer) {
        guard let order = TransferCoding.decode(TransferOrder.self, row.order),
            let state = TransferCoding.decode(TransferState.self, row.state),
            let progress = TransferCoding.decode(TransferProgress.self, row.progress)
        else { return nil }
        (id, claim, identifier) = (row.id, row.claim, row.identifier)
        (self.order, self.state, self.progress) = (order, state, progress)
        // Rows are read without secrets, too; with damaged ones the request would be sent without its credentials.
        if let bytes = row.secrets {
            guard let found = TransferCoding.decode(TransferSecrets.self, bytes) else { return nil }
            secrets = found.sharing(order)
        } else {
            secrets = TransferSecrets(url: order.shownURL, fields: [])
        }
        host = Self.host(of: secrets)
    }

    private static func host(of secrets: TransferSecrets) -> String {
        URL(string: secrets.url)?.host()?.lowercased() ?? ""
    }
}

extension TransferSecrets {
    /// Returns the secrets with the memory of the shown URL, which is the whole URL unless that has secrets.
    fileprivate func sharing(_ order: TransferOrder) -> TransferSecrets {
        url == order.shownURL ? TransferSecrets(url: order.shownURL, fields: fields) : self
    }
}
