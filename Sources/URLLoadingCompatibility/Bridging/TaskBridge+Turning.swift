// SPDX-License-Identifier: Apache-2.0

// A data task that becomes a download or a stream task when its response is known.
//
// Download: pieces of the body may have arrived before the delegate answered, and the load may even have ended; so the
// body is written into a file from here. Stream: no byte of the body may have been read, so the core asks the delegate
// before it reads.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// The file of a data task that became a download.
final class Spool: Sendable {
    let file: BodyFile
    let calls = CallChain()
    private let written = Lock<Int64>(0)
    let expected: Int64?

    init(_ file: BodyFile, expected: Int64?) { (self.file, self.expected) = (file, expected) }

    func count(_ bytes: Int) -> TransferProgress {
        let total = written.withLock { written in
            written += Int64(bytes)
            return written
        }
        return TransferProgress(count: bytes, total: total, expected: expected)
    }
}

extension TaskBridge {
    var spool: Spool? { state.withLock { $0.active?.body.spool } }

    /// The file that a download task has loaded.
    var savedFile: DownloadedFile? {
        let (load, spool) = state.withLock { ($0.load, $0.active?.body.spool) }
        if let spool { return spool.file.result }
        if case .download(let load)? = load { return load.result }
        return nil
    }

    // MARK: Downloads

    func becomeDownload() {
        let (session, task, head, load) = state.withLock { ($0.session, $0.task, $0.active?.head, $0.load) }
        guard let session, let old = task as? URLSessionDataTask, let head, case .data(let load)? = load else { return }
        let new = URLSessionDownloadTask(inPlaceOf: old, self)
        let spool = Spool(BodyFile(head, to: load.request, session.core), expected: head.expectedLength)
        let isTurned = state.withLock { state in
            guard state.mailbox.isHeld, state.active?.body.spool == nil else { return false }
            state.setTask(new)
            state.active?.body = .opening(spool)
            state.mailbox.turn(.becameDownload(old, new))
            return true
        }
        guard isTurned else { return }
        session.replace(identifier, with: new)
        old.endReplaced()
        schedule()
    }

    /// Opens the file, and first writes the bytes that have already arrived.
    func openSpool() async {
        guard let spool else { return }
        await spool.calls.append(.output) { [self] in
            do throws(LoadError) { try await spool.file.open() } catch { return cancel(error) }
            let (body, waiter) = state.withLock { state in
                state.active?.body = .spooling(spool)
                return state.mailbox.takeBody()
            }
            if !body.isEmpty { await append(body, spool) }
            waiter?.resume()
            // The load may have ended before the file was opened.
            if state.withLock({ $0.mailbox.hasEnded }) { try? await spool.file.finish() }
        }.value
        state.withLock { $0.mailbox.answered() }
        schedule()
    }

    /// Completes the file after the end of the load.
    func complete(_ error: LoadError?) {
        let spool = state.withLock { state -> Spool? in
            if case .spooling(let spool)? = state.active?.body { return spool }
            // The end of the load and the state of the file are read under one lock: a file opened later is then
            // completed when it is opened.
            if error == nil { state.mailbox.finish(nil) }
            return nil
        }
        guard let spool else { return finishUpload(error) }
        spool.calls.append(.output) { [self] in
            if let error { return finish(error.with(spool.file.resumeToken)) }
            do throws(LoadError) {
                try await spool.file.finish()
                finish(nil)
            } catch { finish(error) }
        }
    }

    /// Writes a piece of the body; the load continues when it is written.
    func write(_ data: Data, to spool: Spool) async {
        await spool.calls.append(.output) { [self] in await append(data, spool) }.value
        schedule()
    }

    private func append(_ data: Data, _ spool: Spool) async {
        do throws(LoadError) { try await spool.file.append(data) } catch { return cancel(error) }
        let bytes = spool.count(data.count)
        if downloadDelegate != nil { state.withLock { $0.mailbox.put(written: bytes) } }
    }

    func cancel(_ spool: Spool, _ then: @escaping @Sendable (Data?) -> Void) {
        cancel()
        spool.calls.append(.output) { then(spool.file.resumeToken?.data) }
    }

    // MARK: Streams

    /// Whether the request asks for another protocol, so that its response may become a stream.
    var mayBecomeStream: Bool { original.value(forHTTPHeaderField: "Upgrade") != nil }

    /// Asks the delegate before any byte of the body is read.
    func askDisposition(_ response: Response) async throws -> URLLoading.ResponseDisposition {
        guard dataDelegate != nil, !hasHandler else { return .allow }
        let known = URLResponse.make(response, to: state.withLock { $0.current.httpMethod })
        state.withLock { state in
            state.response = known
            state.active?.disposition = .allowed(known)
        }
        let outcome: Inquiry<URLSession.ResponseDisposition>.Outcome = await inquire("didReceive response") {
            [self] session, task, answer in
            guard let delegate = dataDelegate, let task = task as? URLSessionDataTask else {
                return answer.give(.allow)
            }
            delegate.urlSession(session, dataTask: task, didReceive: known) { answer.give($0) }
        }
        switch outcome {
        case .reply(.allow): return .allow
        case .reply(.becomeStream): return .becomeStream
        case .reply(.becomeDownload):
            state.withLock { $0.active?.disposition = .becomesDownload(known) }
            return .allow
        case .reply(.cancel), .withdrawn: return .cancel
        case .dropped: throw DroppedAnswer()
        }
    }

    func refuseStream(_ response: URLResponse) {
        guard isHeld else { return }
        cancel(
            LoadError(
                .badDecision, phase: .deciding, party: .local, url: response.url,
                detail: "only a response to a request with the field Upgrade can become a stream"))
    }

    /// Records that the load handed over its connection and will report no further events.
    func becameStream(_ stream: StreamTask) {
        guard let session = state.withLock({ $0.session }) else { return }
        let task = session.makeTask(
            .init(request: URLRequest(), kind: .stream, isSuccessor: true), { URLSessionStreamTask($0) }
        ) { _ in .success(.stream(stream)) }
        let isCanceled = state.withLock { state in
            if let load = state.load { state.work = .replaced(load) }
            state.mailbox.surrender(.becameStream(task))
            return state.isCanceled
        }
        if isCanceled { task.cancel() }
        schedule()
    }
}
