// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading

@testable import URLLoadingCompatibility

/// Requests, responses, configurations: values without a load.
struct ValueTests {
    @Test("a request is a value; names of fields are case-insensitive")
    func request() throws {
        var request = URLRequest(url: try url("http://a.example/"))
        #expect(request.httpMethod == "GET" && request.timeoutInterval == 60 && request.allHTTPHeaderFields == nil)
        let before = request
        request.setValue("text/plain", forHTTPHeaderField: "content-type")
        request.setValue("text/html", forHTTPHeaderField: "Content-Type")
        request.addValue("a", forHTTPHeaderField: "Accept")
        request.addValue("b", forHTTPHeaderField: "ACCEPT")
        #expect(request.allHTTPHeaderFields == ["Content-Type": "text/html", "Accept": "a,b"])
        #expect(
            request.value(forHTTPHeaderField: "accept") == "a,b" && before.allHTTPHeaderFields == nil
                && before != request)
        request.setValue(nil, forHTTPHeaderField: "aCCEPT")
        #expect(request.allHTTPHeaderFields == ["Content-Type": "text/html"])
        request.allHTTPHeaderFields = nil
        #expect(request == before && request.hashValue == before.hashValue)
        request.timeoutInterval = 60
        #expect(request == before)
        request.httpMethod = "put"
        #expect(request.httpMethod == "PUT")
        request.httpMethod = "Frobnicate"
        #expect(request.httpMethod == "Frobnicate")
        request.httpMethod = nil
        #expect(request.httpMethod == "GET" && request.description == "http://a.example/")
    }

    @Test("a request without a URL says so in every description")
    func descriptionWithoutURL() throws {
        var request = URLRequest(url: try url("http://a.example/"))
        request.url = nil
        #expect(request.description == "url: nil" && request.debugDescription == "url: nil")
        #expect((request as NSURLRequest).description == "<NSURLRequest url: nil>")
    }

    @Test("raw values are those of the platform")
    func rawValues() {
        #expect(URLRequest.CachePolicy.returnCacheDataDontLoad.rawValue == 4)
        #expect(URLRequest.CachePolicy.reloadIgnoringCacheData == .reloadIgnoringLocalCacheData)
        #expect(URLSession.ResponseDisposition.allow.rawValue == 1 && URLSessionTask.State.completed.rawValue == 3)
    }

    @Test(
        "a suggested file name is never a path",
        arguments: [
            ("http://a.example/dir/file.txt?x=1", nil, "file.txt"),
            ("http://a.example/", nil, "a.example"),
            ("http://a.example/%2e%2e", nil, "a.example"),
            ("http://a.example/a%2Fb%5Cc.txt", nil, "c.txt"),
            ("http://a.example/x", "attachment; filename=\"../../etc/passwd\"", "passwd"),
            ("http://a.example/x", "attachment; filename=..", "x"),
            ("http://a.example/x", "attachment; filename=\"C:\\\\dir\\\\a.exe\"", "a.exe"),
            ("http://a.example/x", "attachment; filename=\".bashrc\"", "bashrc"),
            ("http://a.example/x", "attachment; filename=plain.txt; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
            ("http://a.example/x", "attachment; filename*=UTF-8''%2e%2e%2fa%00b", "ab"),
            ("http://a.example/x", "attachment; filename=\"a\u{202e}gpj.exe\"", "agpj.exe"),
            ("http://a.example/x", "nonsense;;;=", "x"),
        ])
    func names(_ address: String, _ disposition: String?, _ name: String) throws {
        let response = HTTPURLResponse(
            url: try url(address), statusCode: 200, httpVersion: nil,
            headerFields: disposition.map { ["content-disposition": $0] })
        #expect(response?.suggestedFilename == name)
    }

    @Test("a suggested file name fits the limit of file systems")
    func longName() throws {
        let response = URLResponse(
            url: try url("http://a.example/" + String(repeating: "%C3%A4", count: 300)), mimeType: nil,
            expectedContentLength: -1, textEncodingName: nil)
        #expect(response.suggestedFilename?.utf8.count == 254)
    }

    @Test(
        "a suggested file name without a path is the host; the media type adds an extension where a name has none",
        arguments: [
            ("http://a.example/", "text/html", "a.example.html"), ("http://a.example", nil, "a.example"),
            ("http://a.example/%2e%2e", "image/jpeg", "a.example.jpg"), ("http://a.example/x", "text/html", "x.html"),
            ("http://a.example/x.txt", "text/html", "x.txt"), ("http://a.example/x", "application/x-none", "x"),
            ("http://[::1]/", "text/plain", "::1.txt"), ("data:", "text/plain", "Unknown.txt"),
        ])
    func nameFromHost(_ address: String, _ type: String?, _ name: String) throws {
        let response = URLResponse(
            url: try url(address), mimeType: type, expectedContentLength: -1, textEncodingName: nil)
        #expect(response.suggestedFilename == name)
        let http = HTTPURLResponse(
            url: try url(address), statusCode: 200, httpVersion: nil, headerFields: type.map { ["Content-Type": $0] })
        #expect(http?.suggestedFilename == name)
    }

    @Test("responses are created, compared, copied and archived")
    func responses() throws {
        let made = try #require(
            HTTPURLResponse(
                url: try url("http://a.example/"), statusCode: 404, httpVersion: "HTTP/1.1",
                headerFields: ["Content-Type": "text/html; charset=Latin1", "Content-Length": "12"]))
        #expect(made.mimeType == "text/html" && made.textEncodingName == "latin1" && made.expectedContentLength == 12)
        #expect(made.copy() as AnyObject === made)
        #expect(made.description == "<HTTPURLResponse 404 text/html http://a.example/>")
        let archive = try NSKeyedArchiver.archivedData(withRootObject: made, requiringSecureCoding: true)
        let read = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: HTTPURLResponse.self, from: archive))
        #expect(read == made && read.hash == made.hash && read.statusCode == 404)
        #expect(read.value(forHTTPHeaderField: "content-LENGTH") == "12")
        let other = HTTPURLResponse(
            url: try url("http://a.example/"), statusCode: 200, httpVersion: nil, headerFields: nil)
        #expect(other != made && other?.expectedContentLength == -1 && other?.allHeaderFields.isEmpty == true)
    }

    @Test(
        "status codes have phrases",
        arguments: [
            (200, "no error"), (404, "not found"), (299, "success"), (599, "server error"), (7, "server error"),
        ])
    func words(_ status: Int, _ words: String) {
        #expect(HTTPURLResponse.localizedString(forStatusCode: status) == words)
    }

    @Test(
        "a zero, negative or infinite timeout means no limit",
        arguments: [0, -1, .infinity, .nan, 1e300, .leastNonzeroMagnitude])
    func times(_ seconds: TimeInterval) {
        #expect(Duration(timeout: seconds) == (seconds == .leastNonzeroMagnitude ? .nanoseconds(1) : nil))
    }

    @Test("a session keeps the connections that it may open", arguments: [(.min, 128), (6, 128), (256, 256)])
    func idleConnections(_ limit: Int, _ kept: Int) {
        let classic = URLSessionConfiguration.ephemeral
        classic.httpMaximumConnectionsPerHost = limit
        let configuration = Configuration(classic.values)
        #expect(configuration.connections.maximumPerHost == max(1, limit))
        #expect(configuration.connections.maximumIdle == kept)
    }

    @Test("names of response fields are case-insensitive: one key, as first written, with all values")
    func fieldNames() throws {
        let address = try url("http://a.example/")
        func response(_ fields: [String: String]) throws -> HTTPURLResponse {
            try #require(HTTPURLResponse(url: address, statusCode: 200, httpVersion: nil, headerFields: fields))
        }
        let head = HTTPHead(status: .ok, headers: ["X-A": "1", "x-a": "2", "set-cookie": "a=b", "Set-Cookie": "c=d"])
        let received = HTTPURLResponse(Response(url: address, http: head), head)
        let fields = received.allHeaderFields as? [String: String]
        #expect(fields == ["X-A": "1, 2", "Set-Cookie": "a=b, c=d"])
        let copied = try response(fields ?? [:])
        #expect(copied.allHeaderFields as? [String: String] == fields)
        #expect(copied.value(forHTTPHeaderField: "x-A") == "1, 2")
        #expect(try response(["X-A": "1", "x-a": "2"]).allHeaderFields as? [String: String] == ["X-A": "1, 2"])
    }

    @Test(
        "a Content-Length is read as on the wire",
        arguments: [
            ("12", 12), ("12, 12", 12), (" 12 ,12", 12), ("12, 13", -1), ("12,", -1), ("+12", -1), ("-12", -1),
            ("0x12", -1), ("", -1), ("99999999999999999999", -1), ("0", 0),
        ])
    func statedLength(_ stated: String, _ expected: Int64) throws {
        let address = try url("http://a.example/")
        let made = HTTPURLResponse(
            url: address, statusCode: 200, httpVersion: nil, headerFields: ["content-length": stated])
        #expect(made?.expectedContentLength == expected)
        let head = HTTPHead(status: .ok, headers: [.contentLength: stated])
        let received = HTTPURLResponse(Response(url: address, http: head), head, toHead: true)
        #expect(received.expectedContentLength == expected)
    }

    @Test(
        "a configuration's fields are case-insensitive, in whichever order its dictionary has them", arguments: 0..<8)
    func configurationFields(_ round: Int) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-A": "1", "x-a": "2", "X-\(round)": "3"]
        let headers = Configuration(configuration.values).headers
        #expect(headers.values(of: "x-a") == ["1"] && headers.count == 2)
    }
}
