// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoading

/// A client of a server of the Model Context Protocol (streamable HTTP, revisions up to 2025-11-25).
actor ModelContextClient {
    /// The server has answered a call with an error of JSON-RPC.
    struct Refusal: Error, Decodable, Equatable { let code: Int, message: String }
    /// The stream of a call has ended without its answer, and cannot be continued.
    struct NoAnswer: Error {}

    private let session: Session
    private let url: URL
    private let receive: @Sendable (Data) -> Void
    private var fields: Headers = [.accept: "application/json, text/event-stream"]
    private var calls = 0

    /// - Parameter receive: takes what the server sends besides its answers: progress, notifications, its own requests.
    init(_ session: Session, _ url: URL, receive: @escaping @Sendable (Data) -> Void = { _ in }) {
        (self.session, self.url, self.receive) = (session, url, receive)
    }

    /// Opens a session with the server, whose identifier later requests repeat.
    func open(as name: String) async throws {
        struct Offer: Encodable {
            struct Client: Encodable { let name: String, version = "1" }
            let protocolVersion = "2025-11-25", capabilities: [String: String] = [:], clientInfo: Client
        }
        struct Choice: Decodable { let protocolVersion: String }
        let choice: Choice = try await call("initialize", Offer(clientInfo: .init(name: name)))
        fields["MCP-Protocol-Version"] = choice.protocolVersion
        try await notify("notifications/initialized", [String: String]())
    }

    /// Calls a method and returns its result. Cancelling the calling task cancels the call on the server, too: to the
    /// server a lost connection is none, because its answer may be fetched later.
    func call<Result: Decodable & Sendable>(_ method: String, _ parameters: some Encodable) async throws -> Result {
        calls += 1
        let number = calls
        do {
            return try await answer(to: number, Message(id: number, method: method, params: parameters))
        } catch  where Task.isCancelled {
            Task { try await notify("notifications/cancelled", ["requestId": number]) }
            throw error
        }
    }

    /// Sends a message that has no answer.
    func notify(_ method: String, _ parameters: some Encodable) async throws {
        let message = Message(id: nil, method: method, params: parameters)
        try await session.data(for: request(.post, .json(message))).1.requireSuccess()
    }

    /// Receives what the server sends on its own, and continues where a lost connection ended. Fails with status 405 if
    /// the server never does.
    func listen() async throws {
        for try await event in session.serverSentEvents(for: request(.get)) { take(event.data) }
    }

    /// Ends the session with the server.
    func close() async throws { try await session.data(for: request(.delete)).1.requireSuccess() }

    private func answer<Result: Decodable & Sendable>(
        to number: Int, _ message: Message<some Encodable>
    ) async throws -> Result {
        var last = ""
        do {
            let result: Result? = try await session.load(request(.post, .json(message))) { response, body in
                try response.requireSuccess()
                fields["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"] ?? fields["Mcp-Session-Id"]
                guard response.mediaType?.essence == "text/event-stream" else {
                    return try parse(try await body.collect(upTo: 1 << 20), for: number)
                }
                for try await event in body.serverSentEvents {
                    last = event.lastEventID
                    if let result: Result = try parse(Data(event.data.utf8), for: number) { return result }
                }
                return nil
            }
            if let result { return result }
        } catch let error as LoadError where RetryPolicy.transientReasons.contains(error.reason) && !last.isEmpty {}
        // The stream has ended before the answer. Not the call is repeated: a GET continues its stream, and again if
        // that ends, as the last identifier tells the server which stream it was.
        guard !last.isEmpty else { throw NoAnswer() }
        var rest = request(.get)
        rest.headers["Last-Event-ID"] = last
        for try await event in session.serverSentEvents(for: rest) {
            if let result: Result = try parse(Data(event.data.utf8), for: number) { return result }
        }
        throw NoAnswer()
    }

    /// Returns the result if a message is the answer to a call; passes other messages on.
    private func parse<Result: Decodable>(_ data: Data, for number: Int) throws -> Result? {
        guard let kind = try? JSONDecoder().decode(Kind.self, from: data), kind.method == nil, kind.id == number else {
            take(data)
            return nil
        }
        let answer = try JSONDecoder().decode(Answer<Result>.self, from: data)
        if let error = answer.error { throw error }
        return answer.result
    }

    /// The first event of a stream has an identifier and no data: a place to continue from.
    private func take(_ data: Data) { if !data.isEmpty { receive(data) } }
    private func take(_ text: String) { take(Data(text.utf8)) }

    private func request(_ method: Method, _ body: RequestBody? = nil) -> Request {
        Request(url: url, method: method, headers: fields, body: body)
    }
}

private struct Message<Parameters: Encodable>: Encodable {
    let jsonrpc = "2.0", id: Int?, method: String, params: Parameters
}
private struct Kind: Decodable { let id: Int?, method: String? }
private struct Answer<Result: Decodable>: Decodable { let result: Result?, error: ModelContextClient.Refusal? }
