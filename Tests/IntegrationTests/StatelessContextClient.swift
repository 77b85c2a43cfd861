// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoading

/// A client of a server of the Model Context Protocol (streamable HTTP, revision 2026-07-28), whose requests each stand
/// for themselves: there is no session, and any server behind the address may answer.
struct StatelessContextClient: Sendable {
    /// The server has answered a call with an error of JSON-RPC.
    struct Refusal: Error, Decodable, Equatable { let code: Int, message: String }
    /// The stream of a call has ended without its answer. The call may have been carried out.
    struct NoAnswer: Error {}

    let session: Session
    let url: URL
    /// The name of the program, which the server may show.
    let program: String

    /// Calls a method and returns its result. Cancelling the calling task closes the stream, which cancels the call.
    /// - Parameters:
    ///   - name: the tool, prompt or resource that the parameters name, for proxies that read no bodies.
    ///   - receive: takes what the server sends before the result: progress, and messages of the log.
    func call<Result: Decodable & Sendable>(
        _ method: String, on name: String? = nil, _ parameters: some Encodable & Sendable,
        receive: @Sendable (Data) -> Void = { _ in }
    ) async throws -> Result {
        let call = Call(method: method, params: Parameters(own: parameters, meta: Meta(program)))
        var request = Request(url: url, method: .post, body: try .json(call))
        request.headers = [.accept: "application/json, text/event-stream", "Mcp-Method": method]
        request.headers["MCP-Protocol-Version"] = Meta.revision
        request.headers["Mcp-Name"] = name.map(Self.fieldValue)
        return try await session.load(request) { response, body in
            if response.mediaType?.essence == "application/json" {
                // The status of an error is 400 or 404, and its body says why.
                return try result(in: try await body.collect(upTo: 1 << 20))
            }
            try response.requireSuccess()
            for try await event in body.serverSentEvents {
                let data = Data(event.data.utf8)
                if (try JSONDecoder().decode(ReplyKind.self, from: data)).id != nil { return try result(in: data) }
                receive(data)
            }
            throw NoAnswer()
        }
    }

    private func result<Result: Decodable>(in data: Data) throws -> Result {
        let answer = try JSONDecoder().decode(Reply<Result>.self, from: data)
        if let error = answer.error { throw error }
        guard let result = answer.result else { throw NoAnswer() }
        return result
    }

    /// Header fields have no characters beyond ASCII: other text is written in Base64.
    private static func fieldValue(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        return isPlain ? text : "=?base64?\(Data(text.utf8).base64EncodedString())?="
    }
}

private struct Call<Own: Encodable>: Encodable {
    let jsonrpc = "2.0", id = 1, method: String, params: Parameters<Own>
}
/// The parameters of a call, and beside them what other revisions agree about once in a session.
private struct Parameters<Own: Encodable>: Encodable {
    let own: Own, meta: Meta
    enum Key: String, CodingKey { case meta = "_meta" }

    func encode(to encoder: any Encoder) throws {
        try own.encode(to: encoder)
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(meta, forKey: .meta)
    }
}
private struct Meta: Encodable {
    static let revision = "2026-07-28"
    struct Client: Encodable { let name: String, version = "1" }
    let version = revision, client: Client, capabilities: [String: String] = [:], progressToken = "progress"
    init(_ program: String) { client = Client(name: program) }
    enum CodingKeys: String, CodingKey {
        case version = "io.modelcontextprotocol/protocolVersion", client = "io.modelcontextprotocol/clientInfo"
        case capabilities = "io.modelcontextprotocol/clientCapabilities", progressToken
    }
}
private struct ReplyKind: Decodable { let id: Int? }
private struct Reply<Result: Decodable>: Decodable { let result: Result?, error: StatelessContextClient.Refusal? }
