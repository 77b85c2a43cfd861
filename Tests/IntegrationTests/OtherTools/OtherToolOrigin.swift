// SPDX-License-Identifier: Apache-2.0

// The server of the command lines in `OtherToolTests`, and the files in their folder.

import Foundation
import URLLoading
import URLLoadingTestSupport
import URLLoadingTesting

enum OtherToolOrigin {
    /// Printable text without repetitions.
    static let content: [UInt8] = (0..<1000).map { (index: Int) -> UInt8 in
        let step: Int = index * 7 + index / 95
        return UInt8(32 + step % 95)
    }
    private static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"

    static func prepare(_ folder: TemporaryFolder, _ base: String) throws {
        let files: [String: [UInt8]] = [
            "data.txt": Array("line one\r\nline two & more\n".utf8), "doc.json": Array("{\"doc\": 1}\n".utf8),
            "up.bin": Array(0...255), "fields.txt": Array("X-File-One: 1\nX-File-Two: 2\n".utf8),
            "format.txt": Array("%{http_code} from file\\n".utf8),
            "jar.txt": Array("# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tjar\tyes\n".utf8),
            "options.txt": Array(
                "# options\nurl = \"\(base)/echo\"\n-d \"a=1\"\nheader = \"X-Conf: yes\"\nsilent\n".utf8),
            "part.bin": Array(content[..<100]), "whole.bin": content, "same.txt": Array("same size!\n".utf8),
            "tag-in.txt": Array("\"f1\"\n".utf8),
            "urls.txt": Array("\(base)/file\n\(base)/folder/name.txt\n".utf8),
        ]
        for (name, bytes) in files { try Data(bytes).write(to: URL(fileURLWithPath: folder.path + "/" + name)) }
    }

    static func answer(_ request: HTTPTestServer.RecordedRequest) async throws -> HTTPTestServer.Response {
        switch request.path {
        case "/plain": .ok("plain text\n", headers: [.contentType: "text/plain"])
        case "/echo", "/put": .ok("\(request.method)\n")
        case let path where path.hasPrefix("/folder/"): .ok("\(request.method)\n")
        case "/moved": .redirect("/plain")
        case "/moved/twice": .redirect("/moved", status: .movedPermanently)
        case "/moved/post": .redirect("/echo")
        case "/moved/post301": .redirect("/echo", status: .movedPermanently)
        case "/moved/post303": .redirect("/echo", status: .seeOther)
        case "/moved/data": .redirect("/data.txt")
        case "/told": .status(.found, headers: [.location: "/plain"], body: .bytes(Array("look there\n".utf8)))
        case "/gone": .status(.notFound, headers: [.lastModified: modified], body: .bytes(Array("gone\n".utf8)))
        case "/data.txt": .ok("other data\n")
        case "/moved/same": .redirect("/echo", status: .temporaryRedirect)
        case "/moved/missing": .redirect("/missing")
        case "/broken": .status(.internalServerError, body: .bytes(Array("broken\n".utf8)))
        case "/cookies": .ok("", headers: ["Set-Cookie": "k=v; Path=/"])
        case "/named": .ok("named\n", headers: ["Content-Disposition": "attachment; filename=\"given.txt\""])
        case "/cut": .ok(.declared(1000, bytes: Array(repeating: 0x78, count: 100)))
        case "/lost": .raw([])
        case "/halves": halves(request)
        case "/trailers": .ok(.chunks(["with trailers\n"], trailers: ["X-Sum": "1"]))
        case "/door": door(request)
        case "/file": file(request)
        case "/ancient": .raw([.bytes(Array("ancient\n".utf8))])
        case "/chunk": .raw(["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"])
        case "/lengths": .raw(["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello"])
        case "/head": .ok("", headers: ["X-Large": String(repeating: "x", count: 200_000)])
        case "/gzip": .ok(.bytes(cutGzip), headers: ["Content-Encoding": "gzip"])
        case "/stall": try await stall()
        default: .status(.notFound, body: .bytes(Array("no such page\n".utf8)))
        }
    }

    /// A text in gzip, without its last 12 bytes.
    private static let cutGzip: [UInt8] = [
        0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0x02, 0x03, 0x4b, 0xce, 0xcf, 0x2d, 0x28, 0x4a, 0x2d, 0x2e,
        0x4e, 0x4d, 0x51, 0x28, 0x49, 0xad, 0x28, 0xd1, 0x51, 0x28, 0xcf, 0xc8, 0x4c, 0xce, 0x50, 0xc8, 0x2c, 0x56,
        0x48, 0x2e, 0x2d, 0x51, 0x48, 0x4a, 0x4d, 0xcb, 0x2f, 0x4a, 0x55, 0xc8, 0x2c, 0x29, 0x56, 0x48, 0xcd, 0x4b,
        0xe1, 0x4a,
    ]

    private static func stall() async throws -> HTTPTestServer.Response {
        try await Task.sleep(for: .seconds(5))
        return .ok("late\n")
    }

    private static func door(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        guard request.headers[.authorization] == "Basic YWRhOnNlY3JldA==" else {
            return .status(.unauthorized, headers: [.wwwAuthenticate: "Basic realm=\"r\""])
        }
        return .ok("in\n")
    }

    /// Cuts the body unless the rest is asked for.
    private static func halves(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        guard request.headers[.range] == "bytes=100-" else {
            return .ok(.declared(Int64(content.count), bytes: Array(content[..<100])))
        }
        return .status(
            .partialContent, headers: [.contentRange: "bytes 100-\(content.count - 1)/\(content.count)"],
            body: .bytes(Array(content[100...])))
    }

    private static func file(_ request: HTTPTestServer.RecordedRequest) -> HTTPTestServer.Response {
        var headers: Headers = [
            .etag: "\"f1\"", .lastModified: modified, .contentType: "application/octet-stream",
            "Accept-Ranges": "bytes",
        ]
        if request.headers["If-None-Match"] == "\"f1\"" { return .status(.notModified, headers: headers) }
        let condition = request.headers[.ifRange]
        guard let range = request.headers[.range], !range.contains(","),
            condition == nil || condition == "\"f1\"" || condition == modified
        else { return .ok(.bytes(content), headers: headers) }
        let ends = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        let first = Int(ends[0]) ?? content.count - (Int(ends[1]) ?? 0)
        let end = ends[0].isEmpty ? content.count : (Int(ends[1]).map { $0 + 1 } ?? content.count)
        guard first < content.count else {
            headers[.contentRange] = "bytes */\(content.count)"
            return .status(.rangeNotSatisfiable, headers: headers, body: .bytes(Array("bad range".utf8)))
        }
        headers[.contentRange] = "bytes \(first)-\(end - 1)/\(content.count)"
        return .status(.partialContent, headers: headers, body: .bytes(Array(content[first..<end])))
    }
}
