// SPDX-License-Identifier: Apache-2.0

// The man page, in the macros of man(7).

enum ManPage {
    static var text: String {
        var page = #"""
            .TH URLLOAD 1 "" "\#(Help.version)" "User Commands"
            .SH NAME
            urlload \- load URLs
            .SH SYNOPSIS
            .B urlload
            .RI [ options ] " URL" ...
            .br
            .B urlload wget
            .RI [ options ] " URL" ...
            .br
            .B urlload http
            .RI [ METHOD ] " URL" " [ITEM" ...]
            .br
            .B urlload tls
            .IR HOST [: PORT ]
            .br
            .B urlload cache
            .IR ls | show | why | rm
            .br
            .B urlload bg
            .IR get | put | ls | watch | pause | resume | cancel | logs | doctor
            .SH DESCRIPTION
            Loads URLs and writes their bodies to standard output, or to files. Options and exit codes are named like
            those of
            .BR curl (1);
            .B urlload wget
            and
            .B urlload http
            take the options of
            .BR wget (1)
            and httpie. Redirects are followed. A URL without a scheme is loaded with https, one of this machine with
            http. [1\-9], [a\-z] and {a,b} in a URL stand for several.
            .PP
            A file is saved completely or not at all. When a load ends early, its partial file is kept, and
            .B \-C
            resumes it.
            .SH OPTIONS

            """#
        for group in OptionRule.Group.allCases {
            page += ".SS \(group.rawValue)\n"
            for rule in OptionTable.curl.rules where rule.group == group { page += option(rule) }
        }
        page +=
            ".SH FILES\n.TP\n.I ~/.config/urlload/config\n"
            + "Options, one a line, read by every run whose first option is not\n.BR \\-q .\n"
        page += ".TP\n.I .FILE.urlload\nThe resume data of FILE.\n"
        page += ".SH ENVIRONMENT\n.TP\n.BR http_proxy \", \" https_proxy \", \" all_proxy \", \" no_proxy\nProxies.\n"
        page += ".TP\n.B NO_COLOR\nNo colours.\n.TP\n.B NETRC\nThe file of\n.BR \\-n .\n"
        page += ".SH \"EXIT STATUS\"\n"
        for code in ExitCode.allCases { page += ".TP\n.B \(code.rawValue)\n\(escaped(code.meaning)).\n" }
        page +=
            ".PP\n.B urlload wget\nand\n.B urlload http\nexit with the codes of wget and httpie, which their\n"
            + ".B \\-\\-help\nlists.\n"
        return page + ".SH \"SEE ALSO\"\n.BR curl (1),\n.BR wget (1)\n"
    }

    private static func option(_ rule: OptionRule) -> String {
        var names = (rule.short.map { ["-\($0)"] } ?? []) + rule.names.map { "--\($0)" }
        names = names.map { "\\fB\(escaped($0))\\fR" }
        let value = rule.value.map { rule.takesWord == nil ? " \\fI\(escaped($0))\\fR" : " [\\fI\(escaped($0))\\fR]" }
        return ".TP\n\(names.joined(separator: ", "))\(value ?? "")\n\(escaped(rule.help)).\n"
    }

    /// Escapes the text. A dot or an apostrophe at the beginning of a line would be a macro.
    private static func escaped(_ text: String) -> String {
        let text = text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("…", with: "\\&...")
            .replacing("^", with: "\\(ha").replacing("~", with: "\\(ti")
        return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text
    }
}
