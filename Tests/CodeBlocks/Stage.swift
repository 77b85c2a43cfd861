// SPDX-License-Identifier: Apache-2.0

// What script/code-blocks runs the blocks of the guides against: a server whose every body is 1 MiB and slow, and a
// folder with files. Each block runs in a process of its own, with a limit of time.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingTesting

/// The server and the folder of a running block.
struct Stage: Sendable {
    /// The least size of each body: 16 times `readAhead`, so that a load which waits for a reader shows itself.
    static let bodySize = 1 << 20
    /// What the server answers, by the calls of the block.
    enum Answer: String {
        case text, object, array, events, parts
    }
    let origin: HTTPTestServer
    let folder: URL
    /// The address of `url`, as the blocks name it.
    let url: URL

    init(_ origin: HTTPTestServer, _ answer: Answer, _ folder: URL, isWebSocket: Bool) throws {
        self.origin = origin
        self.folder = folder
        let address = origin.url("/a.txt")
        url = isWebSocket ? URL(string: address.absoluteString.replacing("http:", with: "ws:"))! : address
        try Data(repeating: 0x61, count: Self.bodySize).write(to: folder.appending(path: "film"))
        if isWebSocket {
            origin.webSocket("/*") { socket in
                try await socket.send(.text("welcome"))
                let closing = Task {
                    try await Task.sleep(for: .seconds(1))
                    try await socket.close(WebSocketClose(.normal))
                }
                defer { closing.cancel() }
                while let message = try await socket.receive() { try await socket.send(message) }
            }
        } else {
            origin.route("/*") { request in Self.response(to: request, answer) }
        }
    }

    private static func response(
        to request: HTTPTestServer.RecordedRequest, _ answer: Answer
    ) -> HTTPTestServer.Response {
        let filling = String(repeating: "a", count: 1_023)
        let object = #"{"id": "7", "name": "Ada", "token": "t", "text": "x", "filling": ""#
        switch answer {
        case .text: return slow(Array(repeating: filling + "\n", count: 1_024).joined(), "text/plain")
        case .object: return slow(object + String(repeating: filling, count: 1_025) + "\"}", "application/json")
        case .array: return slow("[" + object + String(repeating: filling, count: 1_025) + "\"}]", "application/json")
        case .events:
            if request.headers["Last-Event-ID"] != nil { return .status(.noContent) }
            let event = #"data: {"text": ""# + filling + "\"}\n\n"
            return slow(
                "id: 1\n" + Array(repeating: event, count: 1_024).joined() + "data: [DONE]\n\n", "text/event-stream")
        case .parts:
            let part = "--x\r\nContent-Type: text/plain\r\n\r\n" + filling + "\r\n"
            return slow(Array(repeating: part, count: 1_024).joined() + "--x--\r\n", "multipart/mixed; boundary=x")
        }
    }

    /// Returns a response whose body comes in pieces of 64 KiB, with pauses.
    private static func slow(_ text: String, _ type: String) -> HTTPTestServer.Response {
        let bytes = Array(text.utf8)
        let pieces = stride(from: 0, to: bytes.count, by: 1 << 16).flatMap { start in
            [
                HTTPTestServer.Response.Piece.bytes(Array(bytes[start..<min(start + 1 << 16, bytes.count)])),
                .pause(.milliseconds(10)),
            ]
        }
        return .ok(.chunks(pieces), headers: ["Content-Type": type, "ETag": "\"1\""])
    }
}

nonisolated(unsafe) private var running: Stage?

/// The stage of this process; only a running block has one.
var stage: Stage { running! }

/// Runs the block that the arguments name: its name, the answer of the server, "web" or "socket".
func runBlock(_ blocks: [String: @Sendable () async throws -> Void]) async throws {
    let arguments = CommandLine.arguments
    let folder = URL(filePath: FileManager.default.currentDirectoryPath)
    let origin = try HTTPTestServer()
    origin.start()
    running = try Stage(origin, Stage.Answer(rawValue: arguments[2])!, folder, isWebSocket: arguments[3] == "socket")
    do {
        try await blocks[arguments[1]]!()
    } catch {
        _ = "\(error)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
        exit(1)
    }
}
