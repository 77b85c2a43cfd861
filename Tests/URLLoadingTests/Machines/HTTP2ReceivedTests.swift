// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoading
@testable import URLLoadingWire

/// What an exchange has received on its stream.
@Suite struct HTTP2ReceivedTests {
    private static func head(_ code: Int, _ violations: [WireViolation] = []) -> HTTP1ResponseHead {
        HTTP1ResponseHead(
            status: Status(code) ?? .ok, reason: "", version: .http11, headers: [:],
            violations: WireViolations(violations))
    }

    private static func inbox(_ change: (inout HTTP2Inbox) -> Void) -> HTTP2Inbox {
        var inbox = HTTP2Inbox()
        change(&inbox)
        return inbox
    }

    private static func data(_ text: String) -> Chunk { Array(text.utf8).withUnsafeBytes { Chunk(copying: $0) } }

    @Test("an interim head begins a response, a final one gives it its status") func heads() {
        var received = HTTP2Received()
        let nothing = received.add(HTTP2Inbox())
        #expect(!nothing && !received.hasBegun && received.needsMore)
        let interim = received.add(Self.inbox { $0.informational = [Self.head(103)] })
        #expect(interim && received.hasBegun && received.finalHead == nil)
        let final = received.add(Self.inbox { $0.head = Self.head(200) })
        #expect(final && received.finalHead?.status == .ok && received.needsMore && !received.isEmpty)
        // An interim head that comes in the same frames does not hide the final one.
        var other = HTTP2Received()
        _ = other.add(Self.inbox { ($0.informational, $0.head) = ([Self.head(103)], Self.head(200)) })
        #expect(other.finalHead?.status == .ok)
    }

    @Test("pieces precede the end, and are counted for the window") func body() throws {
        var received = HTTP2Received()
        _ = received.add(
            Self.inbox {
                $0.head = Self.head(200)
                $0.chunks.append(Self.data("ab"))
                $0.trailers = ["A": "b"]
            })
        #expect(!received.needsMore && !received.isEmpty && received.trailers == ["A": "b"])
        guard case .chunk(let chunk)? = try received.next(.receiving) else { throw Unexpectedly("no piece") }
        let used = (received.takeUsed(), received.takeUsed())
        #expect(chunk.count == 2 && used == (2, 0) && received.isEmpty)
        guard case .end? = try received.next(.receiving) else { throw Unexpectedly("no end") }
    }

    @Test("a failure follows the pieces that came before it, and says whether a response had begun")
    func failures() throws {
        var received = HTTP2Received()
        received.fail(.closed)
        #expect(throws: LoadError.self) { try received.next(.waiting) }
        #expect(received.needsMore && !received.hasBegun)
        var begun = HTTP2Received()
        _ = begun.add(
            Self.inbox {
                $0.head = Self.head(200)
                $0.chunks.append(Self.data("ab"))
                $0.failure = .closed
            })
        guard case .chunk? = try begun.next(.receiving) else { throw Unexpectedly("no piece") }
        var reason: LoadError.Reason?
        do throws(LoadError) { _ = try begun.next(.receiving) } catch { reason = error.reason }
        #expect(reason == .truncated)
        // Only the first failure counts, and none after the end.
        begun.fail(.unprocessed)
        #expect(begun.failure?.isUnprocessed == false)
        var complete = HTTP2Received()
        _ = complete.add(Self.inbox { ($0.head, $0.trailers) = (Self.head(204), [:]) })
        complete.fail(.closed)
        #expect(complete.failure == nil && complete.isEmpty)
    }

    @Test("the violations of an interim head are not returned again with the final head") func violations() {
        let blank = WireViolation(.remote, .http2MalformedMessage, section: "RFC 9113 8.2.1")
        var received = HTTP2Received()
        let (interim, final) = (Self.head(103, [blank]), Self.head(200, [blank]))
        let first = Array(received.unreported(in: interim))
        #expect(first == [blank] && received.unreported(in: final).isEmpty)
    }
}
