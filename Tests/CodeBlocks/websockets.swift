// SPDX-License-Identifier: Apache-2.0

private let socket = session.webSocketTask(url)
private let typed = AsyncStream<String> { $0.finish() }
private let origin = HTTPTestServer?.none!
nonisolated(unsafe) private var heard: [WebSocketMessage] = []
