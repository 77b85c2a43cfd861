// SPDX-License-Identifier: Apache-2.0

// A response head as `-i` and `-I` write it.

import URLLoading

enum HeadText {
    static func make(_ head: HTTPHead) -> String {
        // HTTP/2 has no reason phrases (RFC 9113 §8.3.2); the space before it remains, as in curl.
        var text = "\(head.version) " + (head.version > .http11 ? "\(head.status.code) " : "\(head.status)") + "\r\n"
        for field in head.headers { text += "\(field.name): \(field.value)\r\n" }
        return text + "\r\n"
    }

    static func make(_ response: Response) -> String {
        var text = ""
        if let date = response.lastModified { text += "Last-Modified: \(date)\r\n" }
        if let length = response.expectedLength { text += "Content-Length: \(length)\r\n" }
        return text
    }
}
