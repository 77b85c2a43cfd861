// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import URLLoadingTesting

@testable import URLLoadingCompatibility

/// The error texts that a program shows to users and writes to its log.
@Suite(.timeLimit(.minutes(2)))
struct ErrorWordsTests {
    private func error(_ reason: LoadError.Reason) -> NSError {
        URLError(
            LoadError(
                reason, phase: .receiving, party: .remote, url: URL(string: "https://a.example/x"), detail: "errno 104")
        )
            as NSError
    }

    /// Returns whether a text is a sentence: it begins with a capital letter, ends with a full stop, and contains none
    /// of the library's own names.
    private func isSentence(_ text: String) -> Bool {
        text.first?.isUppercase == true && text.last == "." && !text.contains("errno") && !text.contains("(")
            && !text.contains(":")
            && text.split(separator: " ").count >= 3
    }

    @Test(
        "the localized description is a sentence; the diagnostic is in the underlying error",
        arguments: [
            LoadError.Reason.connectionLost, .idleTimeout, .hostNotFound, .certificateExpired, .cancelled,
            .fileNotFound, .notHTTP,
            .unsupportedScheme, .badURL, .proxyAuthenticationRequired, .bodyTooLarge,
        ])
    func words(_ reason: LoadError.Reason) throws {
        let error = error(reason)
        #expect(isSentence(error.localizedDescription), "\(error.localizedDescription)")
        let diagnostic = try #require(error.userInfo[NSDebugDescriptionErrorKey] as? String)
        #expect(diagnostic.hasPrefix(reason.name) && diagnostic.contains("errno 104"))
        #expect((error.userInfo[NSUnderlyingErrorKey] as? LoadError)?.reason == reason)
        #expect("\(error)".contains(reason.name), "a log shows it")
    }

    @Test(
        "every error of the classic API has a sentence",
        arguments: [
            -1, -999, -1000, -1001, -1002, -1003, -1004, -1005, -1006, -1007, -1008, -1009, -1010, -1011, -1012, -1013,
            -1014, -1015,
            -1016, -1017, -1018, -1019, -1020, -1021, -1022, -1100, -1101, -1102, -1103, -1200, -1201, -1202, -1203,
            -1204, -1205,
            -1206, -2000, -3000, -3001, -3002, -3003, -3004, -3005, -3006, -3007, -4711,
        ])
    func codes(_ code: Int) {
        let error = error(LoadError.Reason("something", code))
        #expect(error.code == code && isSentence(error.localizedDescription), "\(error.localizedDescription)")
    }

    @Test(
        "a request without a URL, or with a URL without scheme, fails as unsupported",
        arguments: [nil, "nothing", "//host/path"])
    func nowhere(_ text: String?) async throws {
        var request = URLRequest(url: try url("http://a.example/"))
        request.url = text.flatMap { URL(string: $0) }
        let session = URLSession(configuration: .ephemeral)
        let result = await session.result(request)
        let error = try #require(result.error)
        #expect(error.code == .unsupportedURL && isSentence(error.localizedDescription))
        session.invalidateAndCancel()
    }
}
