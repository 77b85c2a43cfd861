// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// Error codes are the published ones of `NSURLErrorDomain`.
@Suite struct ErrorRows {
    typealias Reason = LoadError.Reason

    static let numbers: [(Reason, String, Int)] = [
        (.cancelled, "cancelled", -999), (.sessionInvalidated, "sessionInvalidated", -999),
        (.decisionFailed, "decisionFailed", -999), (.badURL, "badURL", -1000), (.badRequest, "badRequest", -1000),
        (.idleTimeout, "idleTimeout", -1001), (.connectTimeout, "connectTimeout", -1001),
        (.resourceTimeout, "resourceTimeout", -1001),
        (.unsupportedScheme, "unsupportedScheme", -1002), (.hostNotFound, "hostNotFound", -1003),
        (.connectionRefused, "connectionRefused", -1004), (.unreachable, "unreachable", -1004),
        (.cannotConnect, "cannotConnect", -1004), (.connectionLost, "connectionLost", -1005),
        (.truncated, "truncated", -1005), (.lookupFailed, "lookupFailed", -1006),
        (.tooManyRedirects, "tooManyRedirects", -1007), (.bodyUnavailable, "bodyUnavailable", -1008),
        (.notInCache, "notInCache", -1008), (.badRedirect, "badRedirect", -1010),
        (.redirectRefused, "redirectRefused", -1010), (.notHTTP, "notHTTP", -1011),
        (.contentTooLarge, "contentTooLarge", -1015), (.contentDecodingFailed, "contentDecodingFailed", -1015),
        (.requestBodyFailed, "requestBodyFailed", -1021), (.bodyTooLarge, "bodyTooLarge", -1103),
        (.secureConnectionFailed, "secureConnectionFailed", -1200), (.notTLS, "notTLS", -1200),
        (.noCommonTLSVersion, "noCommonTLSVersion", -1200), (.trustRootsUnavailable, "trustRootsUnavailable", -1200),
        (.certificateExpired, "certificateExpired", -1201),
        (.certificateNameMismatch, "certificateNameMismatch", -1202),
        (.certificateInvalid, "certificateInvalid", -1202), (.certificateRevoked, "certificateRevoked", -1202),
        (.certificateUntrusted, "certificateUntrusted", -1203),
        (.certificateNotYetValid, "certificateNotYetValid", -1204),
        (.clientCertificateRequired, "clientCertificateRequired", -1206),
        (.authenticationFailed, "authenticationFailed", -1013),
        (.certificateSelfSigned, "certificateSelfSigned", -1202), (.certificateWeak, "certificateWeak", -1202),
        (.certificateSignatureInvalid, "certificateSignatureInvalid", -1202),
        (.certificatePinMismatch, "certificatePinMismatch", -1202),
        (.certificateStatusMissing, "certificateStatusMissing", -1202),
        (.certificateRefused, "certificateRefused", -1202),
        (.clientCertificateRefused, "clientCertificateRefused", -1205),
        (.badClientIdentity, "badClientIdentity", -1206),
        (.wrongPassphrase, "wrongPassphrase", -1206), (.badHostPattern, "badHostPattern", -1000),
        (.cannotCreateFile, "cannotCreateFile", -3000), (.cannotReadFile, "cannotReadFile", -3001),
        (.cannotWriteFile, "cannotWriteFile", -3003), (.cannotMoveFile, "cannotMoveFile", -3005),
    ]

    static let broken: [(Reason, String)] = [
        (.malformedStatusLine, "malformedStatusLine"), (.unsupportedVersion, "unsupportedVersion"),
        (.bareLineFeed, "bareLineFeed"), (.obsoleteFolding, "obsoleteFolding"),
        (.whitespaceBeforeColon, "whitespaceBeforeColon"), (.malformedFieldName, "malformedFieldName"),
        (.malformedFieldValue, "malformedFieldValue"), (.malformedMethod, "malformedMethod"),
        (.headTooLarge, "headTooLarge"), (.tooManyFields, "tooManyFields"), (.duplicateHost, "duplicateHost"),
        (.forbiddenField, "forbiddenField"), (.conflictingContentLength, "conflictingContentLength"),
        (.malformedContentLength, "malformedContentLength"),
        (.transferEncodingWithContentLength, "transferEncodingWithContentLength"),
        (.unsupportedTransferEncoding, "unsupportedTransferEncoding"), (.malformedChunkSize, "malformedChunkSize"),
        (.chunkSizeOverflow, "chunkSizeOverflow"), (.chunkExtensionsTooLarge, "chunkExtensionsTooLarge"),
        (.malformedChunkEnd, "malformedChunkEnd"), (.trailersTooLarge, "trailersTooLarge"),
        (.tooManyInformational, "tooManyInformational"), (.unexpectedResponse, "unexpectedResponse"),
        (.unexpectedUpgrade, "unexpectedUpgrade"), (.malformedHost, "malformedHost"),
        (.transferEncodingInOldVersion, "transferEncodingInOldVersion"),
    ]

    @Test("every reason has its NSURLErrorDomain number (checklist 161)", arguments: numbers)
    func number(_ reason: Reason, _ name: String, _ code: Int) {
        #expect(reason.code == code)
        #expect(reason.name == name)
        #expect("\(reason)" == name)
        let error = LoadError(reason, phase: .waiting, party: .remote)
        #expect(error.code == code)
    }

    @Test("a malformed message is a bad server response (checklist 161)", arguments: broken)
    func brokenMessage(_ reason: Reason, _ name: String) {
        #expect(reason.code == -1011)
        #expect(reason.name == name)
    }

    @Test("each reason is distinct (checklist 161)")
    func distinct() {
        let all = Self.numbers.map(\.0) + Self.broken.map(\.0)
        #expect(Set(all).count == all.count)
    }

    @Test("an error describes itself in one line, without secrets")
    func description() throws {
        let error = LoadError(
            .hostNotFound, phase: .resolving, party: .system,
            url: try url("http://user:secret@host.example/path?token=x"), detail: "no such name")
        #expect("\(error)" == "hostNotFound (resolving, http://host.example/path): no such name")
    }

    private struct NoStore: Error {}

    @Test("the description of an error is one line with the URL, without its query, and the cause in words")
    func descriptions() throws {
        let address = try url("http://ada:s3cret@a.example:81/b?token=s3cret#c")
        func text(
            _ reason: LoadError.Reason, _ phase: LoadError.Phase, detail: String? = nil, _ cause: (any Error)? = nil
        ) -> String {
            "\(LoadError(reason, phase: phase, party: .local, url: address, detail: detail, underlying: cause))"
        }
        let place = "http://a.example:81/b)"
        #expect(
            text(.hostNotFound, .resolving, detail: "a.example")
                == "hostNotFound (resolving, \(place): the host name a.example does not exist")
        #expect(
            text(.connectionLost, .waiting)
                == "connectionLost (waiting, \(place): the connection was closed before the response")
        #expect(
            text(.decisionFailed, .deciding, detail: "a token refresh failed", NoStore())
                == "decisionFailed (deciding, \(place): a token refresh failed: NoStore()")
        #expect(
            text(.handlerFailed, .waiting, URLError.lines) == "handlerFailed (waiting, \(place): one two")
        #expect(text(.truncated, .receiving) == "truncated (receiving, \(place)")
        #expect("\(WebSocketClose.Code.goingAway)" == "1001" && "\(WebSocketClose.Code(rawValue: 4000))" == "4000")
        let fields: Headers = [.accept: "text/html", .authorization: "Basic s3cret"]
        #expect(fields.map { "\($0)" } == ["Accept: text/html", "Authorization: <hidden>"])
    }

    @Test("the description has the cause beneath the sentence, once, and none that may be secret")
    func causes() throws {
        let address = try url("http://a.example/b?token=s3cret")
        func text(_ reason: Reason, detail: String? = nil, _ cause: any Error) -> String {
            "\(LoadError(reason, phase: .preparing, party: .local, url: address, detail: detail, underlying: cause))"
        }
        let place = "(preparing, http://a.example/b)"
        #expect(text(.badClientIdentity, NoStore()) == "badClientIdentity \(place): NoStore()")
        #expect(text(.decisionFailed, detail: "no: NoStore()", NoStore()) == "decisionFailed \(place): no: NoStore()")
        // A decoder's error may quote the body.
        #expect(text(.undecodableBody, detail: "no Int", NoStore()) == "undecodableBody \(place): no Int")
        let missing = "/nonexistent-\(UInt64.random(in: 0 ... .max))"
        do {
            _ = try Data(contentsOf: URL(filePath: missing))
            Issue.record("there is such a file")
        } catch {
            #expect(
                text(.requestBodyFailed, error) == "requestBodyFailed \(place): \(missing): No such file or directory")
        }
        let token = UploadToken(
            url: try url("http://a.example/s3cret"),
            identity: UploadIdentity(length: 5, modified: 7, digest: "010203", path: "/tmp/a"),
            target: UploadToken.target(of: Request(url: address, method: .post)))
        let body = LoadError(.requestBodyFailed, phase: .preparing, party: .local, url: address, underlying: NoStore())
        #expect("\(body.carrying(token))" == "requestBodyFailed \(place): NoStore()")
    }

    @Test("an error at a proxy reads like others: the proxy, what happened, what helps")
    func atProxies() throws {
        let proxy = try Proxy("http://ada:s3cret@p.example:3128")
        let address = try url("http://a.example/")
        let lost = LoadError(.connectionLost, phase: .connecting, party: .remote).at(address).at(proxy)
        #expect(
            "\(lost)"
                == "connectionLost (connecting, http://a.example/): proxy p.example:3128: the connection was closed")
        let unknown = LoadError(.hostNotFound, phase: .resolving, party: .system, detail: "p.example").at(proxy)
        #expect(
            "\(unknown)" == "proxyNotFound (resolving): proxy p.example:3128: the host name p.example does not exist")
        let weak = LoadError(
            .noCommonTLSVersion, phase: .securing, party: .remote, url: address, detail: "no version",
            underlying: TrustFailure(trust: nil, remedies: [.minimumVersion])
        ).at(proxy)
        #expect(
            "\(weak)" == "noCommonTLSVersion (securing, http://a.example/): proxy p.example:3128: no version; "
                + LoadError.TLSRemedy.minimumVersion.description)
        let late = LoadError(.idleTimeout, phase: .connecting, party: .remote).at(proxy).adding("no data for 1 s")
        #expect(late.detail == "proxy p.example:3128: no data for 1 s" && late.ownDetail == "no data for 1 s")
    }

    @Test("what tells errors of one reason apart is kept by copies, and crosses to the agent and back")
    func kinds() throws {
        let address = try url("http://a.example/")
        let closed = LoadError.closedWithoutAnswer(.waiting).at(address).with(nil).adding("again")
        #expect(closed.kind == .unanswered && closed.url == address && closed.detail?.hasSuffix(": again") == true)
        #expect(TransferError(closed).loadError.kind == .unanswered)
        #expect(TransferError(LoadError(.connectionLost, phase: .waiting, party: .remote)).loadError.kind == nil)
    }

    @Test("a timeout says how long its limit is", arguments: [true, false])
    func timeouts(_ isIdle: Bool) async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .raw([], then: .stall) }
            origin.route("/half") { _ in
                .raw(["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], then: .stall)
            }
            let session = Session(
                .ephemeral.with {
                    if isIdle { $0.timeouts.idle = .milliseconds(50) } else { $0.timeouts.resource = .milliseconds(50) }
                })
            let reason = isIdle ? LoadError.Reason.idleTimeout : .resourceTimeout
            let first = await failure(reason) { try await session.data(from: origin.url()) }
            let second = await failure(reason) { try await session.dataTask(from: origin.url()).resumed().value }
            let third = await failure(reason) { try await session.load(Request(url: origin.url())) { _, _ in } }
            let inBody = await failure(reason) {
                try await session.load(Request(url: origin.url("/half"))) { _, body in for try await _ in body {} }
            }
            let socket = session.webSocketTask(Request(url: origin.url()))
            socket.resume()
            let opening = await failure(reason) { try await socket.receive() }
            for error in [first, second, third, inBody, opening] {
                #expect(error?.detail?.contains("0.05 seconds") == true, "\(String(describing: error))")
            }
            session.invalidateAndCancel()
            origin.releaseStalls()
        }
    }
}

/// An error whose words have several lines.
private enum URLError: Error, CustomStringConvertible {
    case lines
    var description: String { "one\ntwo" }
}
