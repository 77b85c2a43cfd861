// What the command remembers of earlier runs: cookies, and servers that want TLS alone. Nothing, unless it is told to.

import URLLoading

struct MemoryOptions: Sendable {
    /// `name=value; …`, for the hosts of the command line.
    var cookies: [String] = []
    /// Read before the first load.
    var cookieInputs: [String] = []
    /// Written after the last; `-` is standard output.
    var cookieOutput: String?
    /// Read and written.
    var hstsFile: String?
    /// Cookies of files that have no end are not read.
    var dropsSessionCookies = false

    /// `-b`: a file unless there is a `=` in it.
    mutating func addCookies(_ text: String) {
        if text.contains("=") { cookies.append(text) } else if !text.isEmpty { cookieInputs.append(text) }
    }
}

extension OptionTable {
    static let memory: [OptionRule] = [
        OptionRule(
            .memory, nil, "cookies", "FILE",
            "read cookies from FILE, if there is one, and write them back (Netscape format)"
        ) {
            $0.memory.cookieInputs.append($1)
            $0.memory.cookieOutput = $1
        }.like(wget: "--load-cookies --save-cookies", httpie: "--session=NAME"),
        OptionRule(
            .memory, "b", "cookie", "DATA|FILE", "send these to the hosts named here (a=1; b=2), or read them from FILE"
        ) {
            $0.memory.addCookies($1)
        }.also("load-cookies").like(wget: "--load-cookies=FILE", httpie: "Cookie:a=1"),
        OptionRule(.memory, "c", "cookie-jar", "FILE", "write all cookies to FILE at the end; - is standard output") {
            $0.memory.cookieOutput = $1
        }.also("save-cookies").like(wget: "--save-cookies=FILE"),
        OptionRule(
            .memory, "j", switch: "junk-session-cookies", "leave out the cookies of -b FILE that end with a session",
            \.memory.dropsSessionCookies),
        OptionRule(.memory, nil, "hsts", "FILE", "read from FILE which servers want https alone, and write it back") {
            $0.memory.hstsFile = $1
        }.like(wget: "--hsts-file=FILE"),
    ]
}
