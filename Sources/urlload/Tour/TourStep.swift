// SPDX-License-Identifier: Apache-2.0

// The steps. Each shows the code that it runs; a test compares both line by line.

import FoundationEssentials
import URLLoading
import URLLoadingTesting

struct TourStep: Sendable {
    let name: String
    let title: String
    let words: String
    let code: String
    let run: @Sendable (TourStage) async throws -> Void

    static let all = [stream, redirect, refusal, deadline, timeout, cancellation, stub, events]

    static let stream = TourStep(
        name: "stream", title: "A body as it comes",
        words: """
            The origin sends its lines in pieces, with pauses, and cuts them where it
            likes. They are read as they come; nothing is taken from the socket before it
            is asked for.
            """,
        code: """
            try await session.load(Request(url: url)) { response, body in
                for try await line in body.lines {
                    say("\\(line) after \\(milliseconds()) ms")
                }
            }
            """
    ) { stage in
        let (session, url, say) = (Session(stage.configuration), stage.origin.url("/lines"), stage.say)
        let milliseconds = { stage.elapsed / 50 * 50 }
        try await session.load(Request(url: url)) { response, body in
            for try await line in body.lines {
                say("\(line) after \(milliseconds()) ms")
            }
        }
        await session.end()
    }

    static let redirect = TourStep(
        name: "redirect", title: "A redirect, decided",
        words: """
            By default redirects are followed. A decision sees the response and the
            request that would be sent, and answers: follow, another request instead, take
            it as the result, cancel.
            """,
        code: """
            var decisions = Decisions()
            decisions.redirect = Decision { redirect in
                redirect.request.url.path() == "/here" ? .doNotFollow : .follow
            }
            let request = Request(url: url)
            let (_, response) = try await session.data(
                for: request, decisions: decisions)
            let (data, _) = try await session.data(from: url)
            """
    ) { stage in
        let (session, url, say) = (Session(stage.configuration), stage.origin.url("/moved"), stage.say)
        var decisions = Decisions()
        decisions.redirect = Decision { redirect in
            redirect.request.url.path() == "/here" ? .doNotFollow : .follow
        }
        let request = Request(url: url)
        let (_, response) = try await session.data(
            for: request, decisions: decisions)
        let (data, _) = try await session.data(from: url)
        say("with the decision: \(response)")
        say("without: \(String(decoding: data, as: UTF8.self).dropLast())")
        await session.end()
    }

    static let refusal = TourStep(
        name: "refusal", title: "A response, refused",
        words: """
            50 MB of video are on offer. The decision sees the head alone: no byte of the
            body is asked for before its answer, and the connection is closed after it.
            """,
        code: """
            var decisions = Decisions()
            decisions.response = Decision { response in
                response.mediaType?.type == "video" ? .cancel : .allow
            }
            _ = try await session.data(for: request, decisions: decisions)
            """
    ) { stage in
        // Only heads are drawn: the bytes of the body that arrive with the head would fill the drawing.
        var configuration = stage.configuration
        let tap = configuration.wireTap
        configuration.wireTap = { event in tap?(event.head) }
        let (session, url, say) = (Session(configuration), stage.origin.url("/large"), stage.say)
        var decisions = Decisions()
        decisions.response = Decision { response in
            response.mediaType?.type == "video" ? .cancel : .allow
        }
        let request = Request(url: url)
        do {
            _ = try await session.data(for: request, decisions: decisions)
        } catch { say("\(error)") }
        await session.end()
        say("connections left: \(session.connectionsDescription)")
    }

    static let deadline = TourStep(
        name: "deadline", title: "A decision that misses its deadline",
        words: """
            A decision that asks a person or another server has a deadline, and a fallback
            for when it has passed: the closure is cancelled, and the load continues.
            """,
        code: """
            let limit = Duration.milliseconds(100)
            decisions.redirect = Decision(timeout: limit, fallback: .doNotFollow) { _ in
                try await Task.sleep(for: .seconds(60))
                return .follow
            }
            let (_, response) = try await session.data(
                for: request, decisions: decisions)
            """
    ) { stage in
        let (session, url, say) = (Session(stage.configuration), stage.origin.url("/moved"), stage.say)
        var decisions = Decisions()
        let request = Request(url: url)
        let limit = Duration.milliseconds(100)
        decisions.redirect = Decision(timeout: limit, fallback: .doNotFollow) { _ in
            try await Task.sleep(for: .seconds(60))
            return .follow
        }
        let (_, response) = try await session.data(
            for: request, decisions: decisions)
        say("\(response), the redirect itself, after about \(stage.elapsed / 50 * 50) ms")
        await session.end()
    }

    static let timeout = TourStep(
        name: "timeout", title: "A server that says nothing",
        words: """
            The idle timeout ends a load whose server was silent for so long; the resource
            timeout, one that takes too long as a whole. The error says who, where and when.
            """,
        code: """
            var request = Request(url: url)
            request.idleTimeout = .milliseconds(150)
            _ = try await session.data(for: request)
            """
    ) { stage in
        let (session, url, say) = (Session(stage.configuration), stage.origin.url("/silent"), stage.say)
        var request = Request(url: url)
        request.idleTimeout = .milliseconds(150)
        do {
            _ = try await session.data(for: request)
        } catch let error as LoadError {
            say("\(error.reason) (\(error.phase.rawValue)): \(error.detail ?? "-")")
            say("caused by the \(error.party) side, code \(error.code)")
        }
        await session.end()
    }

    static let cancellation = TourStep(
        name: "cancel", title: "A transfer, watched and cancelled",
        words: """
            A task is made at once and can be held, watched and stopped from any thread.
            It reads no further than readAhead (64 KiB) until a reader takes its body.
            """,
        code: """
            let task = session.dataTask(from: url)
            task.resume()
            _ = try await task.response
            try await Task.sleep(for: .milliseconds(50))
            say("\\(task.snapshot)")
            task.cancel()
            _ = try await task.value
            """
    ) { stage in
        var configuration = stage.configuration
        configuration.wireTap = nil
        let (session, url, say) = (Session(configuration), stage.origin.url("/large"), stage.say)
        let task = session.dataTask(from: url)
        task.resume()
        _ = try await task.response
        try await Task.sleep(for: .milliseconds(50))
        say("\(task.snapshot)")
        task.cancel()
        do {
            _ = try await task.value
        } catch { say("\(error)") }
        say("\(task.snapshot)")
        await session.end()
    }

    static let stub = TourStep(
        name: "stub", title: "A scheme of one's own",
        words: """
            A handler answers requests: of a scheme of its own, or in the place of a
            server. The same seam serves middleware, record and replay. Nothing goes over
            the wire.
            """,
        code: """
            configuration.handlers = [Greeting()]
            let session = Session(configuration)
            let url = URL(string: "greet:world")!
            let (data, response) = try await session.data(from: url)
            """
    ) { stage in
        let say = stage.say
        var configuration = stage.configuration
        configuration.handlers = [Greeting()]
        let session = Session(configuration)
        let url = URL(string: "greet:world")!
        let (data, response) = try await session.data(from: url)
        say("\(String(decoding: data, as: UTF8.self)) (\(response.mediaType?.description ?? ""))")
        await session.end()
    }

    static let events = TourStep(
        name: "events", title: "Everything that happens to a load",
        words: """
            Events come in one legal order, which a test can check. Without observers
            they cost nothing. Logs, metrics and traces are made from the same events.
            """,
        code: """
            request.body = .stream {
                AsyncStream { pieces in
                    for piece in ["a body ", "in ", "pieces"] {
                        pieces.yield(Array(piece.utf8))
                    }
                    pieces.finish()
                }
            }
            let task = session.dataTask(request)
            let events = task.events
            task.resume()
            let answer = try await task.value
            for await event in events { say("\\(event)") }
            """
    ) { stage in
        let (session, url, say) = (Session(stage.configuration), stage.origin.url("/upload"), stage.say)
        var request = Request(url: url, method: .post)
        request.body = .stream {
            AsyncStream { pieces in
                for piece in ["a body ", "in ", "pieces"] {
                    pieces.yield(Array(piece.utf8))
                }
                pieces.finish()
            }
        }
        let task = session.dataTask(request)
        let events = task.events
        task.resume()
        let answer = try await task.value
        for await event in events { say("\(event)") }
        say("answer: \(String(decoding: answer, as: UTF8.self).dropLast())")
        await session.end()
    }

    private struct Greeting: ProtocolHandler {
        func canHandle(_ request: Request) -> Bool { request.url.scheme == "greet" }
        func load(_ request: Request, client: ProtocolClient) async throws -> ProtocolResponse {
            .response(
                Response(url: request.url, mediaType: MediaType("text/plain")), data: Data("Hello, world!".utf8))
        }
    }
}

extension Session {
    fileprivate nonisolated func end() async {
        invalidateAndCancel()
        await invalidated()
    }
}

extension WireTapEvent {
    /// The event with only the bytes up to the end of the head.
    fileprivate var head: WireTapEvent {
        guard case .received(let bytes, let connection) = self else { return self }
        let end = bytes.indices.first { bytes[$0...].starts(with: [13, 10, 13, 10]) }
        return .received(end.map { Array(bytes[..<($0 + 4)]) } ?? [], connection: connection)
    }
}
