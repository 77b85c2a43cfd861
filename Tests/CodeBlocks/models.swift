// SPDX-License-Identifier: Apache-2.0

private struct Prompt: Codable { var model = "", stream = true }
private struct Piece: Codable { var text = "" }
