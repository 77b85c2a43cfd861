// SPDX-License-Identifier: Apache-2.0

// Replies of an ftp server, cut at any byte; the addresses in them, and the paths of ftp URLs.

import URLLoadingWire

func fuzzFTP(_ bytes: [UInt8], rule: UInt8) {
    let whole = replies(bytes, pieces: max(1, bytes.count))
    let cut = replies(bytes, pieces: Int(rule % 16) + 1)
    promise(whole == cut, "any cut of replies gives the same")
    for reply in whole.replies {
        promise((100...599).contains(reply.code) && !reply.lines.isEmpty, "a reply has a code and a line")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    if let path = try? FTPPath(text) {
        promise(!path.bytes.contains { $0 == 0 || $0 == 10 || $0 == 13 }, "no line break in a path")
    }
    _ = try? FTPTarget("ftp://" + text)
    converse(whole.replies, rule)
}

private struct Outcome: Equatable {
    var replies: [FTPReply] = []
    var violation: WireViolation.Code?
}

private func replies(_ bytes: [UInt8], pieces: Int) -> Outcome {
    var outcome = Outcome()
    var parser = FTPReplyParser(limit: 512)
    var rest = bytes[...]
    do throws(WireViolation) {
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(piece.count)
            var consumed = 0
            while consumed < piece.count {
                let reply = try piece.withUnsafeBytes { bytes in
                    Result { () throws(WireViolation) in try parser.next(bytes, consumed: &consumed) }
                }.get()
                if let reply { outcome.replies.append(reply) }
            }
        }
    } catch { outcome.violation = error.code }
    return outcome
}

/// Whatever the server sends, the conversation continues or ends with an error, and never sends more than one line.
private func converse(_ replies: [FTPReply], _ rule: UInt8) {
    let operations: [FTPConversation.Job.Operation] = [.retrieve, .list, .store, .size]
    var conversation = FTPConversation(security: rule & 1 == 0 ? .none : .explicit)
    guard let path = try? FTPPath("/a") else { return }
    do {
        try conversation.begin(
            .init(operations[Int(rule >> 1) % 4], path, offset: rule & 16 == 0 ? 0 : 5, mayBeginAnew: rule & 32 == 0))
        var rest = replies[...]
        while true {
            switch conversation.step {
            case .reply:
                guard let reply = rest.popFirst() else { return }
                try conversation.take(reply)
            case .send(let line):
                promise(line.suffix(2) == [13, 10] && !line.dropLast(2).contains(10), "one line")
                conversation.sent()
            case .secure: try conversation.secured()
            case .login: try conversation.login(user: "a", password: "b")
            case .connect(let port):
                promise(port > 0, "a port")
                try conversation.connected()
            case .transfer: conversation.transferred()
            case .idle: return
            }
        }
    } catch {}
}
