// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import URLLoadingWire

@Suite struct FTPConversationTests {
    typealias Job = FTPConversation.Job

    /// Plays a conversation: the server's reply to each step, and the steps taken.
    struct Play {
        var conversation: FTPConversation
        var sent: [String] = []
        var acts: [String] = []
        /// A port to which no data connection can be made.
        var closedPort: UInt16?

        /// - Returns: the reason if the conversation ended before the replies did.
        mutating func run(_ replies: [(Int, String)], user: String = "ada", account: String? = nil) -> FTPConversation
            .Refusal?
        {
            var replies = replies[...]
            do {
                while true {
                    switch conversation.step {
                    case .reply:
                        guard let (code, text) = replies.popFirst() else { return nil }
                        try conversation.take(
                            FTPReply(
                                code, text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)))
                    case .send(let bytes):
                        sent.append(String(decoding: bytes.dropLast(2), as: UTF8.self))
                        #expect(bytes.suffix(2) == [13, 10])
                        conversation.sent()
                    case .secure:
                        acts.append("secure")
                        try conversation.secured()
                    case .login: try conversation.login(user: user, password: "secret", account: account)
                    case .connect(let port):
                        if port == closedPort {
                            acts.append("fail \(port)")
                            if try conversation.connectFailed() { continue }
                            return nil
                        }
                        acts.append("connect \(port)")
                        try conversation.connected()
                    case .transfer:
                        acts.append("transfer")
                        conversation.transferred()
                    case .idle: return nil
                    }
                }
            } catch { return error as? FTPConversation.Refusal }
        }
    }

    func start(_ job: Job, _ security: FTPConversation.Security = .none) throws -> Play {
        var conversation = FTPConversation(security: security)
        try conversation.begin(job)
        return Play(conversation: conversation)
    }

    let features = (211, "Features\n EPSV\n MDTM\n REST STREAM\n SIZE\n UTF8\n MLST type*;\nEnd")

    @Test("A file is retrieved, and a second one over the same connection")
    func retrieve() throws {
        var play = try start(Job(.retrieve, FTPPath("/pub/a.txt")))
        #expect(
            play.run([
                (220, "hello"), (331, "password"), (230, "in"), features, (200, "ok"), (200, "binary"), (213, "5"),
                (213, "20260102030405"),
                (229, "(|||2000|)"), (150, "here"), (226, "done"),
            ]) == nil)
        #expect(
            play.sent == [
                "USER ada", "PASS secret", "FEAT", "OPTS UTF8 ON", "TYPE I", "SIZE pub/a.txt", "MDTM pub/a.txt", "EPSV",
                "RETR pub/a.txt",
            ])
        #expect(play.acts == ["connect 2000", "transfer"] && play.conversation.isReusable)
        #expect(play.conversation.size == 5 && play.conversation.modification == "20260102030405")
        try play.conversation.begin(Job(.retrieve, FTPPath("/b"), offset: 7))
        play.sent = []
        #expect(
            play.run([(213, "9"), (550, "no time"), (229, "(|||2001|)"), (350, "from 7"), (150, "here"), (226, "done")])
                == nil)
        #expect(play.sent == ["SIZE b", "MDTM b", "EPSV", "REST 7", "RETR b"])
        #expect(play.conversation.isReusable && play.conversation.modification == nil)
    }

    @Test(
        "The size in a 150 or 125 reply is kept apart from that of SIZE",
        arguments: [
            ((150, "Opening BINARY mode data connection for a (12345 bytes)."), 12345),
            ((150, "here it is, 7 bytes"), 7),
            ((125, "Data connection open (1 byte)"), 1), ((150, "a-9 bytes.txt (88 bytes)"), 88),
            ((150, "Accepted, 5.2 kbytes to download"), nil),
            ((150, "(bytes)"), nil), ((150, "no size"), nil), ((150, "(99999999999999999999 bytes)"), nil),
            ((150, "(-5 bytes)"), nil),
            ((150, "first\n(12 bytes)"), 12), ((110, "(12 bytes)"), nil), ((150, "x12 bytes"), nil),
        ] as [((Int, String), Int64?)])
    func announcedSize(_ reply: (Int, String), _ size: Int64?) throws {
        var play = try start(Job(.retrieve, FTPPath("/a")))
        let login = [(220, "hello"), (230, "in"), (500, "FEAT?"), (200, "binary"), (500, "SIZE?"), (229, "(|||2000|)")]
        #expect(play.run(login + [reply, (226, "done")]) == nil)
        #expect(play.conversation.size == nil && play.conversation.announcedSize == size)
        // After REST it may be the size of the rest or of the whole.
        try play.conversation.begin(Job(.retrieve, FTPPath("/b"), offset: 3))
        #expect(
            play.run([(500, "SIZE?"), (229, "(|||2000|)"), (350, "from 3"), (150, "(12 bytes)"), (226, "done")]) == nil)
        #expect(play.conversation.announcedSize == nil)
    }

    @Test("With explicit TLS nothing is sent before AUTH TLS, and the data connection is protected")
    func explicit() throws {
        var play = try start(Job(.store, FTPPath("/up")), .explicit)
        #expect(
            play.run([
                (220, "hello"), (234, "go"), (331, "password"), (230, "in"), (200, "ok"), (200, "ok"), (500, "FEAT?"),
                (200, "binary"),
                (229, "(|||2000|)"), (150, "send"), (226, "done"),
            ]) == nil)
        #expect(
            play.sent == [
                "AUTH TLS", "USER ada", "PASS secret", "PBSZ 0", "PROT P", "FEAT", "TYPE I", "EPSV", "STOR up",
            ])
        #expect(play.acts == ["secure", "connect 2000", "transfer"] && play.conversation.protectsData)
    }

    @Test("A server that refuses TLS or the protection of data gets no credentials")
    func insecure() throws {
        var first = try start(Job(.retrieve, FTPPath("/a")), .explicit)
        #expect(first.run([(220, "hello"), (502, "no TLS")])?.reason == .insecure)
        #expect(first.sent == ["AUTH TLS"])
        var second = try start(Job(.retrieve, FTPPath("/a")), .implicit)
        #expect(second.run([(220, "hello"), (230, "in"), (200, "ok"), (534, "no")])?.reason == .insecure)
    }

    @Test("EPSV falls back to PASV once, and the address in 227 is ignored (security 60)")
    func passive() throws {
        var play = try start(Job(.retrieve, FTPPath("/a")))
        let begin = [(220, "hello"), (230, "in"), (500, "FEAT?"), (200, "binary"), (213, "5")]
        #expect(play.run(begin + [(522, "no EPSV"), (227, "(10,9,8,7,4,1)"), (150, "here"), (226, "done")]) == nil)
        #expect(play.acts == ["connect 1025", "transfer"])
        try play.conversation.begin(Job(.retrieve, FTPPath("/a")))
        play.sent = []
        _ = play.run([(213, "5")])
        #expect(play.sent == ["SIZE a", "PASV"])
    }

    @Test("PASV is tried once where the port that EPSV offers cannot be reached, and used from then on")
    func closedPort() throws {
        var play = try start(Job(.retrieve, FTPPath("/a")))
        play.closedPort = 2000
        let begin = [(220, "hello"), (230, "in"), (500, "FEAT?"), (200, "binary"), (213, "5"), (229, "(|||2000|)")]
        #expect(play.run(begin + [(227, "(10,9,8,7,4,1)"), (150, "here"), (226, "done")]) == nil)
        #expect(play.acts == ["fail 2000", "connect 1025", "transfer"] && play.conversation.isReusable)
        try play.conversation.begin(Job(.retrieve, FTPPath("/a")))
        (play.sent, play.acts, play.closedPort) = ([], [], 1025)
        #expect(play.run([(213, "5"), (227, "(10,9,8,7,4,1)")]) == nil)
        #expect(play.sent == ["SIZE a", "PASV"] && play.acts == ["fail 1025"])
    }

    @Test("450 to LIST is an empty listing, and to another command a refusal")
    func emptyListing() throws {
        let login = [(220, "x"), (230, "in")]
        var play = try start(Job(.list, FTPPath("/pub/")))
        #expect(play.run(login + [(500, "FEAT?"), (200, "i"), (229, "(|||9|)"), (450, "no files")]) == nil)
        #expect(play.acts == ["connect 9"] && play.conversation.isReusable)
        var facts = try start(Job(.list, FTPPath("/pub/")))
        let refusal = facts.run(login + [features, (200, "utf8"), (200, "i"), (229, "(|||9|)"), (450, "no files")])
        #expect(facts.sent.last == "MLSD pub" && refusal?.reason == .unavailable)
    }

    @Test("Logins with an account and without a password work")
    func logins() throws {
        var play = try start(Job(.size, FTPPath("/a")))
        #expect(
            play.run(
                [(220, "x"), (332, "account"), (230, "in"), (500, "FEAT?"), (200, "ok"), (213, "77")], account: "staff")
                == nil)
        #expect(play.sent.prefix(2) == ["USER ada", "ACCT staff"] && play.conversation.size == 77)
        var wrong = try start(Job(.retrieve, FTPPath("/a")))
        #expect(wrong.run([(220, "x"), (331, "p"), (530, "no")])?.reason == .login)
        var missing = try start(Job(.retrieve, FTPPath("/a")))
        #expect(missing.run([(220, "x"), (331, "p"), (332, "account")])?.reason == .login)
    }

    @Test("The listing command depends on the server's features")
    func lists() throws {
        for (reply, verb) in [(features, "MLSD pub"), ((500, "FEAT?"), "LIST pub")] {
            var play = try start(Job(.list, FTPPath("/pub/")))
            _ = play.run(
                [(220, "x"), (230, "in"), reply] + (reply.0 == 211 ? [(200, "utf8")] : []) + [
                    (200, "i"), (229, "(|||9|)"), (150, "x"), (226, "x"),
                ])
            #expect(play.sent.last == verb && play.conversation.isReusable)
        }
    }

    @Test("A 421 at any step, and a refusal of a required one, ends the conversation", arguments: 0..<11)
    func refusals(step: Int) throws {
        let whole = [
            (220, "hello"), (331, "password"), (230, "in"), features, (200, "ok"), (200, "binary"), (213, "5"),
            (213, "20260102030405"),
            (229, "(|||2000|)"), (150, "here"), (226, "done"),
        ]
        var closing = try start(Job(.retrieve, FTPPath("/a")))
        #expect(closing.run(whole[..<step] + [(421, "bye")])?.reason == .closing)
        #expect(!closing.conversation.isReusable)
        var refused = try start(Job(.retrieve, FTPPath("/a")))
        let refusal = refused.run(whole[..<step] + [(550, "no"), (550, "no")])
        let optional: Set = [3, 4, 6, 7]  // FEAT, OPTS, SIZE, MDTM: it goes on without.
        #expect((refusal == nil) == optional.contains(step) || refusal?.code == 550)
    }

    @Test("A transfer that the server aborts fails, and a connection in mid-transfer accepts no other")
    func aborted() throws {
        var play = try start(Job(.retrieve, FTPPath("/a")))
        let refusal = play.run([
            (220, "x"), (230, "in"), (500, "F"), (200, "i"), (213, "5"), (229, "(|||9|)"), (150, "x"), (426, "broken"),
        ])
        #expect(refusal?.reason == .aborted && refusal?.command == "RETR")
        #expect(throws: (any Error).self) { try play.conversation.begin(Job(.retrieve, FTPPath("/b"))) }
    }

    @Test("Users and passwords with line breaks are refused (security 61)")
    func injection() throws {
        for (user, password) in [("a\r\nDELE x", "p"), ("a", "p\nSTOR y"), ("a\0", "p")] {
            var play = try start(Job(.retrieve, FTPPath("/a")))
            try play.conversation.take(FTPReply(220, ["x"]))
            #expect(throws: WireViolation.self) { try play.conversation.login(user: user, password: password) }
            #expect(play.conversation.step == .login)
        }
    }
}
