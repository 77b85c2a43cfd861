// SPDX-License-Identifier: Apache-2.0

// Receives the events of a load and the pieces of its body for the task.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension TaskBridge: LoadSink {
    func emit(_ event: LoadEvent) {
        if state.withLock({ $0.ignoresEvents }) { return }
        if hasProgress.load(ordering: .relaxed) { showProgress(event) }
        switch event {
        case .canonicalized(let request):
            return state.withLock { $0.current = URLRequest(request, like: $0.current) }
        case .challenged, .retrying, .retryRefused, .stored, .notStored, .becameDownload: return
        case .becameStream(let stream): return becameStream(stream)
        case .received(let bytes):
            // The delegate is notified only of downloads whose file it gets.
            guard kind == .download, !hasHandler, downloadDelegate != nil else { return }
            state.withLock { $0.mailbox.put(written: bytes) }
        case .resumed(let offset, let expected):
            guard !hasHandler else { return }
            state.withLock { $0.mailbox.put(resumedAt: offset, expected: expected) }
        case .metrics(let metrics):
            guard taskDelegate != nil else { return }
            return state.withLock { $0.mailbox.put(metrics) }
        case .waitingForConnectivity: state.withLock { $0.mailbox.putWaiting() }
        case .informational(let head):
            guard taskDelegate != nil, let url = state.withLock({ $0.current.url }) else { return }
            let response = HTTPURLResponse(Response(url: url, http: head), head)
            state.withLock { $0.mailbox.put(informational: response) }
        case .redirected(let redirect):
            return state.withLock { state in
                state.current = state.next.take() ?? URLRequest(redirect.request, like: state.current)
            }
        case .responded(let response): return respond(response)
        case .bodySent(let bytes): state.withLock { $0.mailbox.put(sent: bytes) }
        case .completed(let error):
            noteClosing()
            return complete(error)
        }
        schedule()
    }

    private func showProgress(_ event: LoadEvent) {
        guard let task = state.withLock({ $0.task }) else { return }
        if case .completed(let error) = event {
            task.showProgress(isWhole: error == nil)
        } else {
            task.showProgress(isWhole: false)
        }
    }

    /// Adds a response. It is delivered with the next event, because usually the body has already arrived.
    private func respond(_ response: Response) {
        let isObserved = kind == .data && (hasHandler || dataDelegate != nil)
        let (method, asked) = state.withLock { ($0.current.httpMethod, $0.active?.disposition.response) }
        let known = asked ?? URLResponse.make(response, to: method)
        let becomesDownload = state.withLock { state -> Bool in
            state.response = known
            state.mailbox.put(known, isObserved: isObserved, isAsked: asked == nil)
            guard let active = state.active else { return false }
            active.head = response
            if isObserved, !hasHandler, active.body.spool == nil {
                active.body = MixedParts(response).map { .parts($0) } ?? .mailbox
            }
            guard case .becomesDownload = active.disposition else { return false }
            state.mailbox.hold()
            return true
        }
        if becomesDownload { becomeDownload() }
        pipe?.respond(known)
    }

    /// How a piece of the body was handled.
    private enum Reception: Sendable {
        /// The piece goes into this file.
        case file(Spool)
        /// The body is a multipart body, to be split into parts.
        case parts
        case taken(mayContinue: Bool, collected: Int)
    }

    func receive(_ chunk: Chunk) async {
        if let pipe { return await pipe.put(chunk) }
        let reception = state.withLock { state -> Reception in
            switch state.active?.body {
            case .spooling(let spool)?: return .file(spool)
            case .parts?: return .parts
            case .mailbox?, .opening?, nil:
                return .taken(mayContinue: state.mailbox.put(chunk), collected: state.mailbox.collectedCount)
            }
        }
        switch reception {
        case .file(let spool): await write(Data(chunk), to: spool)
        case .parts: await receiveParts(chunk)
        case .taken(let mayContinue, let count):
            if count > limit { cancel(LoadError(.bodyTooLarge, phase: .receiving, party: .local, url: original.url)) }
            if !mayContinue { await untilDelivered() }
        }
    }

    /// Waits until everything that has arrived was delivered.
    func untilDelivered() async {
        schedule()
        await withUnsafeContinuation { continuation in
            if !state.withLock({ $0.mailbox.wait(continuation) }) { continuation.resume() }
        }
    }

    func pause() { schedule() }

    func stopped() {
        // A load that was replaced must not withdraw the questions of its replacement.
        if state.withLock({ $0.ignoresEvents }) { return }
        state.withLock { $0.mailbox.stop() }.settle()
        pipe?.release()
    }
}
