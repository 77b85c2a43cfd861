// SPDX-License-Identifier: Apache-2.0

private let socket = {
    let socket = session.webSocketTask(url)
    socket.resume()
    return socket
}()
private let typed = AsyncStream<String> { $0.finish() }
private let origin = stage.origin
nonisolated(unsafe) private var heard: [WebSocketMessage] = []
