// SPDX-License-Identifier: Apache-2.0

// Tasks that a test resumes where it makes them.

package import URLLoading

extension LoadTask {
    /// Resumes the task, and returns it.
    package func resumed() -> LoadTask {
        resume()
        return self
    }
}

extension StreamTask {
    /// Resumes the task, and returns it.
    package func resumed() -> StreamTask {
        resume()
        return self
    }
}

extension WebSocketTask {
    /// Resumes the task, and returns it.
    package func resumed() -> WebSocketTask {
        resume()
        return self
    }

    /// Sends a message, and returns the next one of the server.
    package func echo(of message: WebSocketMessage) async throws -> WebSocketMessage {
        try await send(message)
        return try await receive()
    }
}
