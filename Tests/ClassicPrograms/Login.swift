// SPDX-License-Identifier: Apache-2.0

// A login: challenges answered by a delegate and from the storage, wrong passwords, a password given up.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class Login: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    var passwords: [String]
    var methods: [String] = []
    var realms: [String?] = []
    var body = Data()
    var status = 0
    var error: (any Error)?
    let done = Signal()

    init(_ passwords: [String]) { self.passwords = passwords }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        methods.append(challenge.protectionSpace.authenticationMethod)
        realms.append(challenge.protectionSpace.realm)
        guard challenge.previousFailureCount < passwords.count else {
            return completionHandler(.performDefaultHandling, nil)
        }
        let password = passwords[challenge.previousFailureCount]
        completionHandler(.useCredential, URLCredential(user: "user", password: password, persistence: .none))
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        status = (dataTask.response as? HTTPURLResponse)?.statusCode ?? 0
        body.append(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
        self.error = error
        done.fire()
    }
}

private func login(_ url: URL, _ passwords: [String], configuration: URLSessionConfiguration = .ephemeral) -> Login {
    let login = Login(passwords)
    let session = URLSession(configuration: configuration, delegate: login, delegateQueue: nil)
    session.dataTask(with: url).resume()
    login.done.wait("a login")
    session.invalidateAndCancel()
    return login
}

func runLogin(_ origin: URL) {
    let basic = origin.appendingPathComponent("basic")
    let right = login(basic, ["pass"])
    Check.that("the right password", right.status == 200 && right.body == Data("welcome".utf8), right.status)
    Check.that(
        "the space says where", right.methods == [NSURLAuthenticationMethodHTTPBasic] && right.realms == ["door"],
        right.realms)
    let second = login(basic, ["wrong", "pass"])
    Check.that("the second try", second.status == 200 && second.methods.count == 2, second.methods)
    let none = login(basic, ["wrong"])
    Check.that("who gives up gets the 401", none.status == 401 && none.error == nil, none.error as Any)
    let digest = login(origin.appendingPathComponent("digest"), ["pass"])
    Check.that(
        "Digest", digest.status == 200 && digest.methods == [NSURLAuthenticationMethodHTTPDigest], digest.methods)

    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
        host: origin.host!, port: origin.port!, protocol: "http", realm: "door",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    configuration.urlCredentialStorage?.setDefaultCredential(
        URLCredential(user: "user", password: "pass", persistence: .forSession), for: space)
    let kept = login(basic, [], configuration: configuration)
    Check.that("a credential from the storage", kept.status == 200, kept.status)
}
