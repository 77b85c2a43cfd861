// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingCompatibility

/// NSURLRequest and related types: casts, copies, archives.
struct RequestTests {
    private var request: URLRequest {
        get throws {
            var request = URLRequest(
                url: try url("http://example.org/a"), cachePolicy: .returnCacheDataElseLoad, timeoutInterval: 7)
            request.httpMethod = "post"
            request.httpBody = Data("body".utf8)
            request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
            request.mainDocumentURL = try url("http://example.org/")
            request.networkServiceType = .background
            request.allowsCellularAccess = false
            request.httpShouldHandleCookies = false
            return request
        }
    }

    @Test("URLRequest and NSURLRequest are cast into each other")
    func casts() throws {
        let request = try request
        let object = request as NSURLRequest
        #expect(object.url == request.url && object.httpMethod == "POST" && object.timeoutInterval == 7)
        #expect(object as URLRequest == request)
        #expect(object.value(forHTTPHeaderField: "content-type") == "text/plain")
        let any: Any = object
        #expect(any as? URLRequest == request)
    }

    @Test("a copy of a mutable request does not change with it (checklist 31)")
    func copies() throws {
        let mutable = NSMutableURLRequest(url: try url("http://example.org/"))
        mutable.setValue("1", forHTTPHeaderField: "X")
        mutable.addValue("2", forHTTPHeaderField: "x")
        let copy = try #require(mutable.copy() as? NSURLRequest)
        let second = try #require(mutable.mutableCopy() as? NSMutableURLRequest)
        mutable.httpMethod = "PUT"
        mutable.setValue(nil, forHTTPHeaderField: "X")
        #expect(
            copy.httpMethod == "GET" && copy.value(forHTTPHeaderField: "X") == "1,2" && !(copy is NSMutableURLRequest))
        second.url = try url("http://example.org/other")
        #expect(mutable.url?.path == "/" && second.value(forHTTPHeaderField: "X") == "1,2")
        #expect(copy.copy() as? NSURLRequest === copy)
        #expect(copy.isEqual(copy.mutableCopy()) && copy.hash == (copy.mutableCopy() as? NSURLRequest)?.hash)
        #expect(copy != mutable)
    }

    @Test("an archive contains everything but a body stream")
    func archives() throws {
        let object = try request as NSURLRequest
        let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: data))
        #expect(back == object)
    }

    @Test("setting a body stream removes the body data and vice versa; requests with different streams differ")
    func streams() throws {
        var request = try request
        request.httpBodyStream = InputStream(data: Data("x".utf8))
        #expect(request.httpBody == nil)
        let copy = request
        request.httpBody = Data()
        #expect(request.httpBodyStream == nil && copy.httpBodyStream != nil && copy != request)
    }

    @Test("credentials and protection spaces have equality and archives, and no password in their descriptions")
    func credentials() throws {
        let credential = URLCredential(user: "ada", password: "secret", persistence: .forSession)
        #expect(credential == URLCredential(user: "ada", password: "secret", persistence: .forSession))
        #expect(credential != URLCredential(user: "ada", password: "other", persistence: .forSession))
        #expect(!"\(credential)".contains("secret") && credential.hasPassword)
        let data = try NSKeyedArchiver.archivedData(withRootObject: credential, requiringSecureCoding: true)
        #expect(try NSKeyedUnarchiver.unarchivedObject(ofClass: URLCredential.self, from: data) == credential)
        let a = URLProtectionSpace(host: "h", port: 80, protocol: "http", realm: "r", authenticationMethod: nil)
        let b = URLProtectionSpace(
            host: "h", port: 80, protocol: "http", realm: "r", authenticationMethod: NSURLAuthenticationMethodDefault)
        #expect(a == b && a.hash == b.hash && a.proxyType == nil && !a.isProxy())
        let proxy = URLProtectionSpace(
            proxyHost: "p", port: 1, type: NSURLProtectionSpaceHTTPSProxy, realm: nil, authenticationMethod: nil)
        #expect(proxy.isProxy() && proxy.protocol == nil && proxy.receivesCredentialSecurely && proxy != a)
    }

    @Test("protection spaces are compared without regard to the case of the host and to the spelling of the protocol")
    func spaces() throws {
        let method = NSURLAuthenticationMethodHTTPBasic
        let storage = URLCredentialStorage()
        let ada = URLCredential(user: "ada", password: "secret", persistence: .forSession)
        let made = URLProtectionSpace(
            host: "Example.org", port: 443, protocol: NSURLProtectionSpaceHTTPS, realm: "r",
            authenticationMethod: method)
        storage.set(ada, for: made)
        #expect(storage.allCredentials[made] == ["ada": ada] && storage.credentials(for: made) == ["ada": ada])
        let stored = try #require(storage.allCredentials.keys.first)
        #expect(stored == made && stored.hash == made.hash && stored.protocol == NSURLProtectionSpaceHTTPS)
        for other in [
            URLProtectionSpace(
                host: "example.org", port: 443, protocol: "https", realm: "r", authenticationMethod: method),
            URLProtectionSpace(
                host: "EXAMPLE.ORG", port: 443, protocol: "HTTPS", realm: "r", authenticationMethod: method),
        ] { #expect(other == made && other.hash == made.hash) }
        for other in [
            URLProtectionSpace(
                host: "example.org", port: 443, protocol: "http", realm: "r", authenticationMethod: method),
            URLProtectionSpace(
                host: "example.org", port: 443, protocol: "https", realm: "R", authenticationMethod: method),
            URLProtectionSpace(
                proxyHost: "example.org", port: 443, type: NSURLProtectionSpaceHTTPSProxy, realm: "r",
                authenticationMethod: method),
        ] { #expect(other != made) }
    }
}
