// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@testable import URLLoadingCompatibility

/// The state machine behind a delegate's calls, without a load.
struct MailboxTests {
    private static let response = URLResponse(
        url: URL(filePath: "/"), mimeType: nil, expectedContentLength: -1, textEncodingName: nil)

    private static func words(_ mailbox: inout Mailbox) -> [String] {
        var words: [String] = []
        while let (call, _) = mailbox.next() {
            switch call {
            case .sent(let bytes): words.append("\(bytes)")
            case .question: words.append("question")
            case .waiting: words.append("waiting")
            case .informational(let response): words.append("informational \(response.statusCode)")
            case .resumed(let offset, _): words.append("resumed \(offset)")
            case .written(let bytes): words.append("written \(bytes)")
            case .saved: words.append("saved")
            case .metrics: words.append("metrics")
            case .response: words.append("response")
            case .data(let data): words.append("data \(data.count)")
            case .finished(let error): words.append("finished \(error.map { "\($0.reason)" } ?? "")")
            default: words.append("\(call)")
            }
        }
        return words
    }

    private static let failure = LoadError(.cancelled, phase: .deciding, party: .local)

    @Test("byte counts of a sent body are merged, and restart when the body is sent again")
    func sent() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(sent: TransferProgress(count: 10, total: 10, expected: 20))
        mailbox.put(sent: TransferProgress(count: 10, total: 20, expected: 20))
        #expect(Self.words(&mailbox) == ["+20 20/20"])
        mailbox.put(sent: TransferProgress(count: 10, total: 10, expected: 20))
        mailbox.put(sent: TransferProgress(count: 5, total: 5, expected: 20))
        #expect(Self.words(&mailbox) == ["+5 5/20"])
    }

    @Test("informational responses and sent bytes keep their order while they wait for the delegate")
    func informational() throws {
        var mailbox = Mailbox(.delegate)
        for (status, total) in [(100, 0), (103, 10), (103, 30)] as [(Int, Int64)] {
            if total > 0 { mailbox.put(sent: TransferProgress(count: Int(total), total: total, expected: 40)) }
            mailbox.put(
                informational: try #require(
                    HTTPURLResponse(url: URL(filePath: "/"), statusCode: status, httpVersion: nil, headerFields: nil)))
        }
        mailbox.put(sent: TransferProgress(count: 10, total: 40, expected: 40))
        #expect(
            Self.words(&mailbox) == [
                "informational 100", "+10 10/40", "informational 103", "+30 30/40", "informational 103", "+10 40/40",
            ])
    }

    @Test("no call follows a response before its answer; the lane is notified once for all calls that gather")
    func held() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isObserved: true)
        let first = mailbox.schedule()
        let second = mailbox.schedule()
        #expect(first && !second)
        mailbox.finish(nil)
        #expect(Self.words(&mailbox) == ["response"] && mailbox.isHeld)
        mailbox.answered()
        let again = mailbox.schedule()
        #expect(again && Self.words(&mailbox) == ["finished "] && mailbox.isOver)
        mailbox.finish(Self.failure)
        let late = mailbox.schedule()
        #expect(!late && Self.words(&mailbox) == [])
    }

    @Test("a failed task makes no call but its last, even if the load had succeeded", arguments: [false, true])
    func failed(_ hasEnded: Bool) {
        var mailbox = Mailbox(.delegate)
        mailbox.put(sent: TransferProgress(count: 1, total: 1, expected: 1))
        mailbox.put(Self.response, isObserved: true)
        if hasEnded { mailbox.finish(nil) }
        _ = mailbox.fail(Self.failure)
        mailbox.put(Self.response, isObserved: true)
        if !hasEnded { mailbox.finish(nil) }
        #expect(Self.words(&mailbox) == ["finished cancelled"])
    }

    @Test("after a failure no call becomes due, and the task has the first error")
    func nothingAfterFailure() {
        var mailbox = Mailbox(.delegate)
        _ = mailbox.fail(Self.failure)
        mailbox.put(sent: TransferProgress(count: 1, total: 1, expected: 1))
        mailbox.put(written: TransferProgress(count: 1, total: 1, expected: 1))
        mailbox.put(conversation: .readClosed)
        mailbox.putWaiting()
        _ = mailbox.fail(LoadError(.bodyTooLarge, phase: .deciding, party: .local))
        #expect(!mailbox.hasEnded && Self.words(&mailbox) == [])
        mailbox.finish(nil)
        #expect(mailbox.error == nil && Self.words(&mailbox) == ["finished cancelled"])
        #expect(mailbox.error?.reason == .cancelled)
    }

    @Test("a response that arrives before the previous one was answered waits for that answer")
    func secondResponse() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isObserved: true)
        #expect(Self.words(&mailbox) == ["response"])
        mailbox.put(Self.response, isObserved: true)
        #expect(Self.words(&mailbox) == [])
        mailbox.answered()
        #expect(Self.words(&mailbox) == ["response"])
        mailbox.answered()
        mailbox.finish(nil)
        #expect(Self.words(&mailbox) == ["finished "])
    }

    @Test("a captured connection is the last call; the end of its load is recorded later")
    func handedOver() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(conversation: .betterRoute)
        mailbox.put(conversation: .captured(CapturedStreams(Session().streamTask(host: "h", port: 1))))
        mailbox.put(conversation: .readClosed)
        #expect(Self.words(&mailbox).count == 2)
        #expect(mailbox.isOver && !mailbox.hasEnded && mailbox.error == nil)
        mailbox.finish(Self.failure)
        #expect(mailbox.hasEnded && mailbox.error?.reason == .cancelled && Self.words(&mailbox) == [])
    }

    @Test("an operation queued before a cancellation makes no call; the next operation does")
    func overtaken() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isObserved: true)
        _ = mailbox.schedule()
        _ = mailbox.fail(Self.failure)
        mailbox.finish(nil)
        let first = mailbox.beginTurn()
        let second = mailbox.beginTurn()
        #expect(!first && second && Self.words(&mailbox) == ["finished cancelled"])
    }

    @Test("an operation that ends after one call reports whether calls are left")
    func turns() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isObserved: true)
        mailbox.finish(nil)
        let isScheduled = mailbox.schedule()
        let begins = mailbox.beginTurn()
        _ = mailbox.next()
        let hasMore = mailbox.endTurn()
        #expect(isScheduled && begins && !hasMore, "the response is not answered yet")
        mailbox.answered()
        let isScheduledAgain = mailbox.schedule()
        let isScheduledTwice = mailbox.schedule()
        _ = mailbox.next()
        let isOver = !mailbox.endTurn() && mailbox.isOver
        #expect(isScheduledAgain && !isScheduledTwice && isOver)
    }

    @Test("the last call waits for the handlers that precede it")
    func handlers() {
        var mailbox = Mailbox(.delegate)
        mailbox.awaitHandler()
        mailbox.awaitHandler()
        mailbox.finish(Self.failure)
        #expect(Self.words(&mailbox) == [])
        mailbox.handlerReturned()
        #expect(Self.words(&mailbox) == [])
        mailbox.handlerReturned()
        #expect(Self.words(&mailbox) == ["finished cancelled"])
    }

    @Test("a load stopped before it waits does not wait, and received events are delivered")
    func stopped() async {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isObserved: true)
        mailbox.stop().settle()
        await withUnsafeContinuation { continuation in
            let waits = mailbox.wait(continuation)
            #expect(!waits)
            if !waits { continuation.resume() }
        }
        #expect(Self.words(&mailbox) == ["response"])
    }
}
