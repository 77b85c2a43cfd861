// SPDX-License-Identifier: Apache-2.0

// The creation of WebSocket and stream tasks.

import URLLoading

extension URLSession {
    final func makeStream(_ host: String, _ port: Int) -> URLSessionStreamTask {
        makeTask(.init(request: URLRequest(), kind: .stream), { URLSessionStreamTask($0) }) { bridge in
            let stream = core.streamTask(holdingSessionTo: host, port: port)
            stream.decide(by: bridge.decisions)
            bridge.follow(stream)
            return .success(.stream(stream))
        }
    }

    final func makeSocket(_ request: URLRequest, _ protocols: [String]) -> URLSessionWebSocketTask {
        makeTask(.init(request: request, kind: .socket), { URLSessionWebSocketTask($0) }) { bridge in
            Request.make(request, bridge.cachePolicy).map { made in
                var options = WebSocketOptions()
                options.maximumMessageSize = URLSessionWebSocketTask.usualMessageSize
                return .socket(
                    core.webSocketTask(
                        made, protocols: protocols, options: options, decisions: bridge.decisions, sink: bridge))
            }
        }
    }
}
