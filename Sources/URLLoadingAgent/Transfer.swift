import FoundationEssentials
import URLLoading
import URLLoadingIO

/// What an attempt goes on with, as it is written down.
struct TransferProgress: Codable, Sendable, Equatable {
    /// Of a download (``ResumeToken/data``).
    var resumption: Data?
    /// Of an upload (``UploadToken/text``).
    var uploadToken: String?
    /// What was answered to the attempt that goes on.
    var response: TransferResponse?
    var received: Int64 = 0
    var expectedToReceive: Int64?
    var sent: Int64 = 0
    var expectedToSend: Int64?
}

/// One transfer in the agent's memory.
struct Transfer: Sendable {
    let id: String
    let number: Int64
    let identifier: String
    var order: TransferOrder
    let secrets: TransferSecrets
    var state: TransferState
    var progress = TransferProgress()
    /// The journal has it: before that nothing is sent.
    var isAccepted = false
    /// Its event, once it is over and the journal has that.
    var event: Int64?

    var host: String { URL(string: secrets.url)?.host()?.lowercased() ?? "" }

    /// Whether an attempt that is broken off loses nothing.
    var isResumable: Bool { progress.resumption != nil || progress.uploadToken != nil || progress.received == 0 }

    var record: TransferRecord {
        let shown = state.shown
        var record = TransferRecord(id: id, number: number, order: order, state: shown.state)
        (record.reason, record.until, record.outcome) = (shown.reason, shown.until, shown.outcome)
        (record.received, record.expectedToReceive) = (progress.received, progress.expectedToReceive)
        (record.sent, record.expectedToSend) = (progress.sent, progress.expectedToSend)
        record.attempts = state.attempts
        return record
    }

    var journaled: JournaledTransfer {
        JournaledTransfer(
            id: id, number: number, identifier: identifier, order: TransferCoding.encode(order),
            state: TransferCoding.encode(state), progress: TransferCoding.encode(progress))
    }

    /// The same without what never changes.
    var update: JournalChange {
        .update(number: number, state: TransferCoding.encode(state), progress: TransferCoding.encode(progress))
    }

    init(id: String, number: Int64, identifier: String, order: TransferOrder, secrets: TransferSecrets) {
        (self.id, self.number, self.identifier, self.order) = (id, number, identifier, order)
        self.secrets = secrets
        state = TransferState(notBefore: order.earliestBegin)
    }

    /// One that was written down; `nil` if it cannot be read.
    init?(_ row: JournaledTransfer, secrets: [UInt8]?) {
        guard let order = TransferCoding.decode(TransferOrder.self, row.order),
            let state = TransferCoding.decode(TransferState.self, row.state),
            let progress = TransferCoding.decode(TransferProgress.self, row.progress)
        else { return nil }
        (id, number, identifier) = (row.id, row.number, row.identifier)
        (self.order, self.state, self.progress) = (order, state, progress)
        self.secrets =
            secrets.flatMap { TransferCoding.decode(TransferSecrets.self, $0) }
            ?? TransferSecrets(url: order.shownURL, fields: [])
        isAccepted = true
    }
}
