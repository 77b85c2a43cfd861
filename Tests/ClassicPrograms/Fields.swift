// SPDX-License-Identifier: Apache-2.0

// A program that works with fields by hand: those of responses, of cookies, and those that frame a body.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private func ask(_ request: URLRequest) -> (text: String, response: HTTPURLResponse?) {
    final class Box: @unchecked Sendable {
        var text = ""
        var response: HTTPURLResponse?
    }
    let box = Box()
    let done = Signal()
    let session = URLSession(configuration: .ephemeral)
    session.dataTask(with: request) { data, response, _ in
        box.text = String(decoding: data ?? Data(), as: UTF8.self)
        box.response = response as? HTTPURLResponse
        done.fire()
    }.resume()
    let what = "\(request.httpMethod ?? "") \(request.allHTTPHeaderFields ?? [:])"
    if done.wait(what) { session.finishTasksAndInvalidate() } else { session.invalidateAndCancel() }
    return (box.text, box.response)
}

func runFields(_ origin: URL) {
    names(origin)
    ages()
    fileNames()
    framing(origin.appendingPathComponent("framing"))
}

private func names(_ origin: URL) {
    let received = ask(URLRequest(url: origin.appendingPathComponent("fields"))).response
    let fields = received?.allHeaderFields as? [String: String] ?? [:]
    let same = fields.filter { $0.key.lowercased() == "x-a" }
    Check.that("names that differ in case are one key with both values", Array(same.values) == ["1, 2"], same)
    Check.that(
        "under any of its names", received?.value(forHTTPHeaderField: "x-A") == "1, 2",
        received?.value(forHTTPHeaderField: "x-A") as Any)
    let url = URL(string: "http://example.org/")!
    let copied = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)
    Check.that(
        "a copy has the same fields", copied?.allHeaderFields as? [String: String] == fields,
        copied?.allHeaderFields as Any)
    Check.that(
        "and the same value", copied?.value(forHTTPHeaderField: "X-a") == "1, 2",
        copied?.value(forHTTPHeaderField: "X-a") as Any)
    let twice = HTTPURLResponse(
        url: url, statusCode: 200, httpVersion: nil, headerFields: ["Content-Length": "12, 12"])
    Check.that(
        "a length that is stated twice", twice?.expectedContentLength == 12, twice?.expectedContentLength as Any)
}

private func ages() {
    func seconds(_ age: String?, _ expires: Any?) -> Double? {
        var properties: [HTTPCookiePropertyKey: Any] = [.name: "a", .value: "b", .domain: "example.org", .path: "/"]
        if let age { properties[.maximumAge] = age }
        if let expires { properties[.expires] = expires }
        return HTTPCookie(properties: properties)?.expiresDate?.timeIntervalSinceNow
    }
    let later = Date(timeIntervalSinceNow: 90_000)
    for (what, age, expires, expected) in [
        ("a maximum age", "100", nil, 0.0...100), ("a maximum age beside a date", "100", later, 0...100),
        ("a date alone", nil, later, 80_000...90_000), ("an age that is no number", "soon", later, 80_000...90_000),
    ] as [(String, String?, Date?, ClosedRange<Double>)] {
        let found = seconds(age, expires)
        Check.that("a cookie with \(what)", found.map { expected.contains($0) } == true, found as Any)
    }
    let text = seconds("100", "Wed, 09 Jun 2100 10:18:14 GMT")
    Check.that("a cookie with a maximum age beside a text", text.map { $0 <= 100 } == true, text as Any)
    let neither = seconds(nil, nil)
    Check.that("a cookie with neither", neither == nil, neither as Any)
}

private func fileNames() {
    for (address, type, expected) in [
        ("http://example.org/", nil, "example.org"), ("http://example.org/", "text/html", "example.org.html"),
        ("http://example.org/dir/file.txt", "text/plain", "file.txt"),
    ] as [(String, String?, String)] {
        let response = URLResponse(
            url: URL(string: address)!, mimeType: type, expectedContentLength: -1, textEncodingName: nil)
        Check.that(
            "the file of \(address) as \(type ?? "anything")", response.suggestedFilename == expected,
            response.suggestedFilename as Any)
    }
}

/// The origin answers with the method, the Content-Length, the Transfer-Encoding, and the number of bytes it received.
private func framing(_ url: URL) {
    func send(_ method: String, _ fields: [String: String], body: Data?) -> String {
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBody = body
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return ask(request).text
    }
    let body = Data("naïve".utf8)
    for (what, fields, expected) in [
        ("a wrong length", ["Content-Length": "5"], "PUT 6 - 6"),
        ("an empty length", ["Content-Length": ""], "PUT 6 - 6"),
        ("chunks", ["Transfer-Encoding": "chunked"], "PUT - chunked 6"),
    ] {
        let text = send("PUT", fields, body: body)
        Check.that("\(what) with a body", text == expected, text)
    }
    let get = send("GET", ["Content-Length": "5"], body: nil)
    Check.that("a length without a body", get == "GET - - 0", get)
}
