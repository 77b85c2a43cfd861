// A response head as `-i` and `-I` write it.

import URLLoading

enum HeadText {
    static func make(_ head: HTTPHead) -> String {
        var text = "\(head.version) \(head.status)\r\n"
        for field in head.headers { text += "\(field.name): \(field.value)\r\n" }
        return text + "\r\n"
    }
}
