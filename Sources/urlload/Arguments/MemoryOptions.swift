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
