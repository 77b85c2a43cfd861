// SPDX-License-Identifier: Apache-2.0

// The options for state that outlives a run: cookies and HSTS hosts. Without them nothing is stored.

struct MemoryOptions: Sendable {
    /// `name=value; …`, for the hosts of the command line.
    var cookies: [String] = []
    /// Cookie files read before the first load.
    var cookieInputs: [String] = []
    /// The cookie file written after the last load; `-` is standard output.
    var cookieOutput: String?
    /// True if the folder of that file is created when it is missing, readable by its owner alone.
    var createsCookieFolder = false
    /// The HSTS file, read and written.
    var hstsFile: String?
    /// True if session cookies in the files are ignored.
    var dropsSessionCookies = false

    /// Takes the argument of `-b`: cookies if it contains `=`, otherwise the path of a file.
    mutating func addCookies(_ text: String) {
        if text.contains("=") { cookies.append(text) } else if !text.isEmpty { cookieInputs.append(text) }
    }
}
