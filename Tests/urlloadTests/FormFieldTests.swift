// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import URLLoading

@testable import urlload

/// `-F`, with curl's grammar, and `--sse`.
struct FormFieldTests {
    @Test(
        "A field of -F is a text, a file or the text of a file",
        arguments: [
            ("a=b", FormField(name: "a", content: .text("b"))), ("a=", FormField(name: "a", content: .text(""))),
            ("=b=c", FormField(name: "", content: .text("b=c"))),
            ("a=b;c;type=", FormField(name: "a", content: .text("b;c;type="))),
            ("a=b;type=text/html", FormField(name: "a", content: .text("b"), type: "text/html")),
            (
                "a=;type=x;type=text/html;charset=utf-8",
                FormField(name: "a", content: .text(";type=x"), type: "text/html;charset=utf-8")
            ),
            ("f=@/a/b.txt", FormField(name: "f", content: .file("/a/b.txt"))),
            ("f=@-", FormField(name: "f", content: .file("-"))),
            ("f=<b.txt", FormField(name: "f", content: .textOf("b.txt"))),
            (
                "f=@b;type=text/plain;charset=utf-8;filename=c",
                FormField(name: "f", content: .file("b"), type: "text/plain;charset=utf-8", fileName: "c")
            ),
            (
                "f=@b; filename=c; type=image/png",
                FormField(name: "f", content: .file("b"), type: "image/png", fileName: "c")
            ),
            (#"f=@"a;b\"c";filename="d;\\e""#, FormField(name: "f", content: .file(#"a;b"c"#), fileName: #"d;\e"#)),
        ])
    func fields(_ text: String, _ field: FormField) throws {
        #expect(try FormField(text) == field)
        #expect(try ArgumentParser.parse(["-F", text, "u"]).request.formFields == [field])
    }

    @Test("A field of --form-string is always text")
    func literal() throws {
        #expect(
            try ArgumentParser.parse(["--form-string", "a=@b;type=c", "u"]).request.formFields == [
                FormField(name: "a", content: .text("@b;type=c"))
            ])
    }

    @Test(
        "Errors in fields are named",
        arguments: [
            (["-F", "a", "u"], "-F takes name=value, and there is no = in it"),
            (["--form-string", "a", "u"], "--form-string takes name=value, and there is no = in it"),
            (["-F", "a=@b;size=3", "u"], "-F: 'size' is neither type nor filename"),
            (["-F", "a=@b;c", "u"], "-F: 'c' is neither type=… nor filename=…"),
            (["-F", "a=@b;type=no type", "u"], "-F: 'no type' is no media type"),
            (["-F", "a=b", "-d", "c", "u"], "-F sends a form and -d sends data: not both"),
            (["-F", "a=b", "-I", "u"], "-I asks for a head and -F sends a form: not both"),
            (["-F", "a=@-", "-F", "b=<-", "u"], "standard input can be sent once"),
            (["--sse", "u", "v"], "--sse takes one URL: events do not end"),
            (["--sse", "-o", "f", "u"], "--sse writes events to standard output: not with -o, -O, -i or -I"),
            (["--sse", "-i", "u"], "--sse writes events to standard output: not with -o, -O, -i or -I"),
        ])
    func mistakes(_ words: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try ArgumentParser.parse(words) }
    }

    @Test("A form is sent as multipart/form-data")
    func form() async throws {
        let path = "/tmp/urlload-form-\(UUID()).html"
        try Data("<p>".utf8).write(to: URL(filePath: path))
        defer { unlink(path) }
        let name = try #require(path.split(separator: "/").last)
        let options = try ArgumentParser.parse([
            "-F", "a=1", "-F", "f=@\(path)", "-F", "g=<\(path);type=text/x", "-F", "h=2;type=text/y", "u",
        ])
        let url = try #require(URL(string: "http://h.example/"))
        let request = try Request(options, url)
        let type = try #require(request.body?.contentType)
        #expect(
            request.method == .post && type.hasPrefix("multipart/form-data; boundary=")
                && !request.headers.contains(.contentType))
        let boundary = type.dropFirst("multipart/form-data; boundary=".count)
        let body = try #require(try await request.body?.collect(upTo: 4096))
        let parts = [
            "name=\"a\"\r\n\r\n1", "name=\"f\"; filename=\"\(name)\"\r\nContent-Type: text/html\r\n\r\n<p>",
            "name=\"g\"\r\nContent-Type: text/x\r\n\r\n<p>", "name=\"h\"\r\nContent-Type: text/y\r\n\r\n2",
        ].map { "--\(boundary)\r\nContent-Disposition: form-data; \($0)\r\n" }
        #expect(String(decoding: body, as: UTF8.self) == parts.joined() + "--\(boundary)--\r\n")
        let missing = try ArgumentParser.parse(["-F", "f=@/no/such/file", "u"])
        let error = #expect(throws: OutputError.self) { try Request(missing, url) }
        #expect(error?.code == .read && error?.words.contains("/no/such/file") == true)
    }

    @Test("An event is written as a block of lines or as a JSON object on one line")
    func events() {
        let event = ServerSentEvent(type: "price", data: "a\n\n\"b\"", lastEventID: "7")
        #expect(EventText.make(event, asJSON: false) == "event: price\nid: 7\ndata: a\ndata: \ndata: \"b\"\n\n")
        #expect(EventText.make(ServerSentEvent(data: ""), asJSON: false) == "data: \n\n")
        #expect(
            EventText.make(event, asJSON: true) == #"{"type":"price","data":"a\n\n\"b\"","lastEventID":"7"}"# + "\n")
    }

    @Test("Event streams have only the time limits of the command line")
    func limits() throws {
        let url = try #require(URL(string: "http://h.example/"))
        let free = try Request(ArgumentParser.parse(["--sse", "u"]), url)
        #expect(free.idleTimeout == nil && free.resourceTimeout == nil)
        let limited = try Request(ArgumentParser.parse(["--sse", "--timeout", "5", "-m", "9", "u"]), url)
        #expect(limited.idleTimeout == .seconds(5) && limited.resourceTimeout == .seconds(9))
    }
}
