// SPDX-License-Identifier: Apache-2.0

private struct Receipt: Codable {}
private struct Prompt: Codable { var model = "", stream = true }
private struct Piece: Codable { var text = "" }
private let (image, picture, bytes, call) = (Data(), file, Data(), Order())
private struct User: Codable {}
private let lines = AsyncStream { "" }
private struct Sum { var text = "" }
private let sum = Sum()
private func bytes(for cause: BodyProviderContext.Cause) async throws -> Data { Data() }
nonisolated(unsafe) private var mcpSession: String?
private func handle(_ message: Data) {}
