// SPDX-License-Identifier: Apache-2.0

private let lines = [""]
private let task = session.streamTask(host: host, port: port)
nonisolated(unsafe) private var received: [Chunk] = []
