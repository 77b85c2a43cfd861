// SPDX-License-Identifier: Apache-2.0

// Options for the request: method, fields, body.

import URLLoading

extension OptionTable {
    static let request: [OptionRule] = [
        OptionRule(
            .request, "X", "request", "METHOD",
            "the method; default GET, POST with -d and -F, PUT with -T, HEAD with -I"
        ) { (options, text) throws(UsageError) in
            let method = Method(text)
            guard method.isValid else { throw UsageError("\(text) is no method") }
            options.request.method = method
        }.also("method").like(wget: "--method=METHOD", httpie: "METHOD before the URL"),
        OptionRule(.request, nil, "url", "URL", "load this URL too") { $0.urls.append($1) },
        OptionRule(
            .request, "g", flag: "globoff", "do not expand [1-9], [a-z] and {a,b} in URLs"
        ) { $0.request.expandsPatterns = false }.undone { $0.request.expandsPatterns = true },
        OptionRule(
            .request, nil, switch: "path-as-is", "send /../ and /./ in a URL's path as they are", \.request.keepsPath
        )
        .like(httpie: "--path-as-is"),
        OptionRule(
            .request, "H", "header", "'Name: value'", "send this field; 'Name:' sends none, 'Name;' an empty one"
        ) {
            (options, text) throws(UsageError) in
            try options.take(field: text)
        }.like(wget: "--header='Name: value'", httpie: "Name:value"),
        OptionRule(.request, "A", "user-agent", "TEXT", "send this User-Agent; empty for none") {
            $0.request.userAgent = $1
        }
        .like(wget: "-U TEXT", httpie: "User-Agent:TEXT"),
        OptionRule(
            .request, "e", "referer", "URL",
            "send this Referer; URL;auto or ;auto: after a redirect, where it came from"
        ) {
            $0.data.take(referer: $1)
        }.like(wget: "--referer=URL", httpie: "Referer:URL"),
        OptionRule(.request, "r", "range", "A-B", "request only these bytes: 0-499, 500-, -500") {
            (options, text) throws(UsageError) in
            options.data.range = try OptionValue.range(text)
        }.like(wget: "--start-pos=A", httpie: "Range:bytes=A-B"),
        OptionRule(
            .request, "z", "time-cond", "DATE|FILE", "load only if newer than DATE, or than FILE; -DATE: if older"
        ) { (options, text) throws(UsageError) in
            options.data.condition = try TimeCondition(text)
        }.like(wget: "-N, --timestamping"),
        OptionRule(
            .request, nil, "checksum", "sha-256=HEX", "fail unless the body has this digest; also sha-512; exit code 32"
        ) { (options, text) throws(UsageError) in
            do throws(LoadError) { options.request.expectedDigest = try BodyDigest(text) } catch {
                throw UsageError("--checksum: \(error.detail ?? "no digest")")
            }
        },
        OptionRule(.request, nil, "etag-compare", "FILE", "load only if the ETag differs from that in FILE") {
            $0.data.tagToCompare = $1
        },
        OptionRule(.request, nil, "etag-save", "FILE", "write the ETag to FILE") { $0.data.tagToSave = $1 },
        OptionRule(.request, "I", switch: "head", "request the head only (HEAD), and write it", \.request.asksForHead)
            .also("spider").like(wget: "--spider", httpie: "HEAD before the URL"),
        OptionRule(
            .request, nil, flag: "compressed",
            "accept content codings (gzip …) and decode them; the default without -o and -O"
        ) { $0.request.acceptsCompressed = true }.like(wget: "--compression=auto", httpie: "(default)"),
        OptionRule(.request, nil, flag: "no-compressed", "accept no content codings; the default with -o and -O") {
            $0.request.acceptsCompressed = false
        }.like(wget: "--compression=none"),
    ]

    static let content: [OptionRule] = [
        OptionRule(
            .request, "d", "data", "DATA|@FILE",
            "send DATA, or FILE without line breaks (@-: standard input); & joins several"
        ) {
            $0.request.payloads.append($1.hasPrefix("@") ? .lines(String($1.dropFirst())) : .text($1))
        }.also("data-ascii").like(wget: "--post-data=DATA", httpie: "-f NAME=VALUE"),
        OptionRule(.request, nil, "data-binary", "DATA|@FILE", "like -d, but send FILE unchanged") {
            $0.request.payloads.append($1.hasPrefix("@") ? .file(String($1.dropFirst())) : .text($1))
        }.like(wget: "--post-file=FILE", httpie: "< FILE, @FILE"),
        OptionRule(.request, nil, "data-raw", "DATA", "send DATA, also if it begins with @") {
            $0.request.payloads.append(.text($1))
        }.like(wget: "--body-data=DATA", httpie: "--raw DATA"),
        OptionRule(
            .request, nil, "data-urlencode", "NAME=TEXT", "send it percent-encoded; =TEXT, TEXT, @FILE, NAME@FILE too"
        ) { $0.request.payloads.append(.encoding($1)) }.like(httpie: "-f NAME=VALUE"),
        OptionRule(
            .request, nil, "json", "DATA|@FILE", "send DATA as application/json, and accept it; several are joined"
        ) {
            $0.request.payloads.append(.json($1))
            $0.data.isJSON = true
        }.like(httpie: "NAME=VALUE, NAME:=JSON"),
        OptionRule(
            .request, "G", switch: "get", "send the data of -d and --data-… as the query of a GET",
            \.data.sendsDataAsQuery
        ).like(httpie: "NAME==VALUE"),
        OptionRule(
            .request, nil, "url-query", "NAME=TEXT", "add it to the query of the URL, encoded; +TEXT as it is"
        ) {
            $0.data.query.append($1.hasPrefix("+") ? .text(String($1.dropFirst())) : .encoding($1))
        }.like(httpie: "NAME==VALUE"),
        OptionRule(
            .request, "T", "upload-file", "FILE",
            "upload FILE with PUT; - is standard input; its name is added to a URL ending in /"
        ) {
            $0.uploads.append($1)
            $0.request.upload = $1
        }.like(wget: "--method=PUT --body-file=FILE", httpie: "PUT URL < FILE"),
        OptionRule(
            .request, nil, "resumable", "STATEFILE",
            "with -T: resumable upload; STATEFILE keeps its state for a later run"
        ) {
            $0.request.uploadState = $1
        },
        OptionRule(
            .request, "F", "form", "NAME=VALUE|@FILE",
            "send a form with this field, or file (;type= ;filename=); may be repeated"
        ) { (options, text) throws(UsageError) in
            options.request.formFields.append(try FormField(text))
        }.like(httpie: "-f NAME@FILE"),
        OptionRule(.request, nil, "form-string", "NAME=VALUE", "like -F, but VALUE is always text") {
            (options, text) throws(UsageError) in
            options.request.formFields.append(try .literal(text))
        }.like(httpie: "--multipart NAME=VALUE"),
    ]
}

extension DataOptions {
    /// Takes `URL`, `URL;auto` or `;auto`.
    mutating func take(referer text: String) {
        refererFollows = text.hasSuffix(";auto")
        let first = refererFollows ? String(text.dropLast(";auto".count)) : text
        referer = first.isEmpty ? nil : first
    }
}

extension Options {
    /// Takes `Name: value`; `Name:` and `Name;` as in curl; `@FILE` contains one field a line.
    mutating func take(field text: String) throws(UsageError) {
        if text.hasPrefix("@") {
            let lines = try ConfigFile.text(String(text.dropFirst()), mustExist: true) ?? ""
            for line in lines.split(whereSeparator: \.isNewline) where line.contains(where: { !$0.isWhitespace }) {
                try take(field: String(line))
            }
            return
        }
        if text.hasSuffix(";"), !text.contains(":") {
            request.fields.append(try OptionValue.field(text.dropLast() + ":").0, "")
            return
        }
        let (name, value) = try OptionValue.field(text)
        guard !value.isEmpty else { return request.removedFields.append(name) }
        request.fields.append(name, value)
    }
}
