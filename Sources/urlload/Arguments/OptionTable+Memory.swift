// SPDX-License-Identifier: Apache-2.0

// The options of cookies and HSTS.

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
            .memory, "b", "cookie", "DATA|FILE",
            "send these cookies (a=1; b=2) to the hosts of the URLs, or read cookies from FILE"
        ) {
            $0.memory.addCookies($1)
        }.also("load-cookies").like(wget: "--load-cookies=FILE", httpie: "Cookie:a=1"),
        OptionRule(.memory, "c", "cookie-jar", "FILE", "write all cookies to FILE at the end; - is standard output") {
            $0.memory.cookieOutput = $1
        }.also("save-cookies").like(wget: "--save-cookies=FILE"),
        OptionRule(
            .memory, "j", switch: "junk-session-cookies", "leave out the cookies of -b FILE that end with a session",
            \.memory.dropsSessionCookies),
        OptionRule(.memory, nil, "hsts", "FILE", "read hosts to load with https only from FILE; write them back") {
            $0.memory.hstsFile = $1
        }.like(wget: "--hsts-file=FILE"),
    ]
}
