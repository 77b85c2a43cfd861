import Foundation
import Testing
import URLLoading

@testable import URLLoadingCompatibility

/// The machine behind a delegate's calls, without a load.
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

    @Test("counts of a body sent are put together, and begin anew when it is sent again")
    func sent() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(sent: TransferProgress(count: 10, total: 10, expected: 20))
        mailbox.put(sent: TransferProgress(count: 10, total: 20, expected: 20))
        #expect(Self.words(&mailbox) == ["+20 20/20"])
        mailbox.put(sent: TransferProgress(count: 10, total: 10, expected: 20))
        mailbox.put(sent: TransferProgress(count: 5, total: 5, expected: 20))
        #expect(Self.words(&mailbox) == ["+5 5/20"])
    }

    @Test("nothing follows a response before the answer; the lane is told once for all that gathers")
    func held() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isHeard: true)
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

    @Test("what fails is heard of no more but its end, also if the load had succeeded", arguments: [false, true])
    func failed(_ hasEnded: Bool) {
        var mailbox = Mailbox(.delegate)
        mailbox.put(sent: TransferProgress(count: 1, total: 1, expected: 1))
        mailbox.put(Self.response, isHeard: true)
        if hasEnded { mailbox.finish(nil) }
        _ = mailbox.fail(Self.failure)
        mailbox.put(Self.response, isHeard: true)
        if !hasEnded { mailbox.finish(nil) }
        #expect(Self.words(&mailbox) == ["finished cancelled"])
    }

    @Test("after a failure nothing becomes due, and the first error is the task's")
    func nothingAfterFailure() {
        var mailbox = Mailbox(.delegate)
        _ = mailbox.fail(Self.failure)
        mailbox.put(sent: TransferProgress(count: 1, total: 1, expected: 1))
        mailbox.put(written: TransferProgress(count: 1, total: 1, expected: 1))
        mailbox.put(said: .readClosed)
        mailbox.putWaiting()
        _ = mailbox.fail(LoadError(.bodyTooLarge, phase: .deciding, party: .local))
        #expect(!mailbox.hasEnded && Self.words(&mailbox) == [])
        mailbox.finish(nil)
        #expect(mailbox.error == nil && Self.words(&mailbox) == ["finished cancelled"])
        #expect(mailbox.error?.reason == .cancelled)
    }

    @Test("a response that arrives before the answer to the one before it waits for that answer")
    func secondResponse() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isHeard: true)
        #expect(Self.words(&mailbox) == ["response"])
        mailbox.put(Self.response, isHeard: true)
        #expect(Self.words(&mailbox) == [])
        mailbox.answered()
        #expect(Self.words(&mailbox) == ["response"])
        mailbox.answered()
        mailbox.finish(nil)
        #expect(Self.words(&mailbox) == ["finished "])
    }

    @Test("a connection that was given away is the last call; how its load ends is known later")
    func handedOver() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(said: .betterRoute)
        mailbox.put(said: .captured(CapturedStreams(Session().streamTask(host: "h", port: 1))))
        mailbox.put(said: .readClosed)
        #expect(Self.words(&mailbox).count == 2)
        #expect(mailbox.isOver && !mailbox.hasEnded && mailbox.error == nil)
        mailbox.finish(Self.failure)
        #expect(mailbox.hasEnded && mailbox.error?.reason == .cancelled && Self.words(&mailbox) == [])
    }

    @Test("a turn that was put into the queue before a cancellation makes no call; the next one does")
    func overtaken() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isHeard: true)
        _ = mailbox.schedule()
        _ = mailbox.fail(Self.failure)
        mailbox.finish(nil)
        let first = mailbox.beginTurn()
        let second = mailbox.beginTurn()
        #expect(!first && second && Self.words(&mailbox) == ["finished cancelled"])
    }

    @Test("a turn that ends after one call says whether there are more")
    func turns() {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isHeard: true)
        mailbox.finish(nil)
        let isScheduled = mailbox.schedule()
        let begins = mailbox.beginTurn()
        _ = mailbox.next()
        let goesOn = mailbox.endTurn()
        #expect(isScheduled && begins && !goesOn, "the response is not answered yet")
        mailbox.answered()
        let isScheduledAgain = mailbox.schedule()
        let isScheduledTwice = mailbox.schedule()
        _ = mailbox.next()
        let isOver = !mailbox.endTurn() && mailbox.isOver
        #expect(isScheduledAgain && !isScheduledTwice && isOver)
    }

    @Test("the last call waits for handlers that must be called before it")
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

    @Test("a load that was stopped before it waits does not wait, and what came is heard")
    func stopped() async {
        var mailbox = Mailbox(.delegate)
        mailbox.put(Self.response, isHeard: true)
        mailbox.stop().settle()
        await withUnsafeContinuation { continuation in
            let waits = mailbox.wait(continuation)
            #expect(!waits)
            if !waits { continuation.resume() }
        }
        #expect(Self.words(&mailbox) == ["response"])
    }
}
