// SPDX-License-Identifier: Apache-2.0

// How `--sse` writes an event: as a block of lines in the same event-stream format, or as one JSON object on a line.

import URLLoading

enum EventText {
    static func make(_ event: ServerSentEvent, asJSON: Bool) -> String {
        asJSON ? json(event) : block(event)
    }

    private static func block(_ event: ServerSentEvent) -> String {
        var text = event.type == "message" ? "" : "event: \(event.type)\n"
        if !event.lastEventID.isEmpty { text += "id: \(event.lastEventID)\n" }
        for line in event.data.split(separator: "\n", omittingEmptySubsequences: false) { text += "data: \(line)\n" }
        return text + "\n"
    }

    private static func json(_ event: ServerSentEvent) -> String {
        JSONText.object([
            ("type", .text(event.type)), ("data", .text(event.data)), ("lastEventID", .text(event.lastEventID)),
        ]).description + "\n"
    }
}
