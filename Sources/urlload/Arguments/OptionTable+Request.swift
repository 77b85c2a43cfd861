// Options for the request: method, fields, body.

import URLLoading

extension OptionTable {
    static let request: [OptionRule] = [
        OptionRule(
            .request, "X", "request", "METHOD",
            "GET unless said otherwise; POST with -d and -F, PUT with -T, HEAD with -I"
        ) { (options, text) throws(UsageError) in
            let method = Method(text)
            guard method.isValid else { throw UsageError("\(text) is no method") }
            options.method = method
        }.also("method").like(wget: "--method=METHOD", httpie: "METHOD before the URL"),
        OptionRule(.request, nil, "url", "URL", "load this URL too") { $0.urls.append($1) },
        OptionRule(
            .request, "g", flag: "globoff", "take [1-9], [a-z] and {a,b} in URLs as they are; else each stands for many"
        ) { $0.expandsPatterns = false }.undone { $0.expandsPatterns = true },
        OptionRule(
            .request, "H", "header", "'Name: value'", "send this field; 'Name:' sends none, 'Name;' an empty one"
        ) {
            (options, text) throws(UsageError) in
            try options.take(field: text)
        }.like(wget: "--header='Name: value'", httpie: "Name:value"),
        OptionRule(.request, "A", "user-agent", "TEXT", "send this User-Agent; empty for none") { $0.userAgent = $1 }
            .like(wget: "-U TEXT", httpie: "User-Agent:TEXT"),
        OptionRule(.request, "e", "referer", "URL", "send this Referer") { $0.data.referer = $1 }
            .like(wget: "--referer=URL", httpie: "Referer:URL"),
        OptionRule(.request, "r", "range", "A-B", "ask for these bytes alone: 0-499, 500-, -500") {
            (options, text) throws(UsageError) in
            options.data.range = try OptionValue.range(text)
        }.like(wget: "--start-pos=A", httpie: "Range:bytes=A-B"),
        OptionRule(
            .request, "z", "time-cond", "DATE|FILE", "only if it is newer than DATE, or than FILE; -DATE: if older"
        ) { (options, text) throws(UsageError) in
            options.data.condition = try TimeCondition(text)
        }.like(wget: "-N, --timestamping"),
        OptionRule(.request, nil, "etag-compare", "FILE", "only if its ETag is another than that in FILE") {
            $0.data.tagToCompare = $1
        },
        OptionRule(.request, nil, "etag-save", "FILE", "write the ETag to FILE") { $0.data.tagToSave = $1 },
        OptionRule(.request, "I", switch: "head", "ask for the head only, and write it", \.asksForHead)
            .also("spider").like(wget: "--spider", httpie: "HEAD before the URL"),
        OptionRule(
            .request, nil, flag: "compressed",
            "ask for a compressed body and write it expanded; the default without -o and -O"
        ) { $0.acceptsCompressed = true }.like(wget: "--compression=auto", httpie: "(default)"),
        OptionRule(.request, nil, flag: "no-compressed", "write the body as it was sent; the default with -o and -O") {
            $0.acceptsCompressed = false
        }.like(wget: "--compression=none"),
    ]

    static let content: [OptionRule] = [
        OptionRule(
            .request, "d", "data", "DATA|@FILE",
            "send DATA, or FILE without line breaks (@-: standard input); & joins several"
        ) {
            $0.payloads.append($1.hasPrefix("@") ? .lines(String($1.dropFirst())) : .text($1))
        }.also("data-ascii").like(wget: "--post-data=DATA", httpie: "-f NAME=VALUE"),
        OptionRule(.request, nil, "data-binary", "DATA|@FILE", "the same, and FILE is sent as it is") {
            $0.payloads.append($1.hasPrefix("@") ? .file(String($1.dropFirst())) : .text($1))
        }.like(wget: "--post-file=FILE", httpie: "< FILE, @FILE"),
        OptionRule(.request, nil, "data-raw", "DATA", "send DATA, also if it begins with @") {
            $0.payloads.append(.text($1))
        }.like(wget: "--body-data=DATA", httpie: "--raw DATA"),
        OptionRule(
            .request, nil, "data-urlencode", "NAME=TEXT", "send it percent-encoded; =TEXT, TEXT, @FILE, NAME@FILE too"
        ) { $0.payloads.append(.encoding($1)) }.like(httpie: "-f NAME=VALUE"),
        OptionRule(
            .request, nil, "json", "DATA|@FILE", "send DATA as JSON, with the types that say so; several are joined"
        ) {
            $0.payloads.append(.json($1))
            $0.data.isJSON = true
        }.like(httpie: "NAME=VALUE, NAME:=JSON"),
        OptionRule(
            .request, "G", switch: "get", "send -d and its companions in the URL, by GET", \.data.goesToQuery
        ).like(httpie: "NAME==VALUE"),
        OptionRule(
            .request, nil, "url-query", "NAME=TEXT", "add it to the query of the URL, encoded; +TEXT as it is"
        ) {
            $0.data.query.append($1.hasPrefix("+") ? .text(String($1.dropFirst())) : .encoding($1))
        }.like(httpie: "NAME==VALUE"),
        OptionRule(
            .request, "T", "upload-file", "FILE",
            "send FILE as it is, with PUT; - is standard input; a URL ending in / takes its name"
        ) {
            $0.uploads.append($1)
            $0.upload = $1
        }.like(wget: "--method=PUT --body-file=FILE", httpie: "PUT URL < FILE"),
        OptionRule(
            .request, nil, "resumable", "STATEFILE",
            "with -T: go on where a lost connection or an earlier run left it; STATEFILE remembers"
        ) {
            $0.uploadState = $1
        },
        OptionRule(
            .request, "F", "form", "NAME=VALUE|@FILE",
            "send a form with this field, or file (;type= ;filename=); may be repeated"
        ) { (options, text) throws(UsageError) in
            options.formFields.append(try FormField(text))
        }.like(httpie: "-f NAME@FILE"),
        OptionRule(.request, nil, "form-string", "NAME=VALUE", "the same, with VALUE as it is, whatever it begins with")
        { (options, text) throws(UsageError) in
            options.formFields.append(try .literal(text))
        }.like(httpie: "--multipart NAME=VALUE"),
    ]
}

extension Options {
    /// Takes `Name: value`; `Name:` and `Name;` as in curl; `@FILE` contains one field a line.
    fileprivate mutating func take(field text: String) throws(UsageError) {
        if text.hasPrefix("@") {
            let lines = try ConfigFile.text(String(text.dropFirst()), mustExist: true) ?? ""
            for line in lines.split(whereSeparator: \.isNewline) where line.contains(where: { !$0.isWhitespace }) {
                try take(field: String(line))
            }
            return
        }
        if text.hasSuffix(";"), !text.contains(":") {
            fields.append(try OptionValue.field(text.dropLast() + ":").0, "")
            return
        }
        let (name, value) = try OptionValue.field(text)
        guard !value.isEmpty else { return removedFields.append(name) }
        fields.append(name, value)
    }
}
