// SPDX-License-Identifier: Apache-2.0

// A client of an API: relative URLs, fields under any case, odd media types, and what it tells its user of errors.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private struct Answer: @unchecked Sendable {
    var text = ""
    var response: URLResponse?
    var error: (any Error)?
}

private func ask(_ request: URLRequest) -> Answer {
    final class Box: @unchecked Sendable { var answer = Answer() }
    let box = Box()
    let done = Signal()
    URLSession.shared.dataTask(with: request) { data, response, error in
        box.answer = Answer(text: String(decoding: data ?? Data(), as: UTF8.self), response: response, error: error)
        done.fire()
    }.resume()
    done.wait(request.url?.absoluteString ?? "a request without a URL")
    return box.answer
}

func runRequests(_ origin: URL) {
    let relative = URL(string: "text?a=b", relativeTo: origin)!
    let request = URLRequest(url: relative)
    Check.that(
        "a request has the absolute URL",
        request.url?.baseURL == nil && request.url?.relativeString == relative.absoluteString, request.url as Any)
    Check.that("two requests for one page are equal", request == URLRequest(url: relative.absoluteURL))
    Check.that("it is loaded", ask(request).text == "hello")

    fields(origin)
    types(origin)
    errors(origin)
}

private func fields(_ origin: URL) {
    var request = URLRequest(url: origin)
    request.setValue("text/html", forHTTPHeaderField: "Accept")
    request.setValue("text/plain", forHTTPHeaderField: "accept")
    request.addValue("text/css", forHTTPHeaderField: "ACCEPT")
    Check.that(
        "a field is found under its name", request.allHTTPHeaderFields?["Accept"] == "text/plain,text/css",
        request.allHTTPHeaderFields as Any)
    request.setValue("text/plain", forHTTPHeaderField: "content-type")
    Check.that(
        "also if it was set in lower case", request.allHTTPHeaderFields?["Content-Type"] == "text/plain",
        request.allHTTPHeaderFields as Any)

    var post = URLRequest(url: origin.appendingPathComponent("type"))
    post.httpMethod = "POST"
    post.httpBody = Data()
    let none = ask(post).text
    Check.that("an empty body has no type", none == "none", none)
    post.httpBody = Data("a=b".utf8)
    let form = ask(post).text
    Check.that("another is a form", form == "application/x-www-form-urlencoded", form)
}

private func types(_ origin: URL) {
    let odd = HTTPURLResponse(
        url: origin, statusCode: 200, httpVersion: nil, headerFields: ["Content-Type": "text/html; charset"])
    Check.that(
        "a parameter without a value", odd?.mimeType == "text/html" && odd?.textEncodingName == nil,
        odd?.mimeType as Any)
    let mixed = HTTPURLResponse(
        url: origin, statusCode: 200, httpVersion: nil, headerFields: ["Content-Type": "text/html; x; charset=utf-8"])
    Check.that(
        "and the charset behind it", mixed?.mimeType == "text/html" && mixed?.textEncodingName == "utf-8",
        mixed?.textEncodingName as Any)
    let page = ask(URLRequest(url: URL(string: "data:text/html;charset,hello")!))
    Check.that(
        "a data URL with an odd type", page.text == "hello" && page.response?.mimeType == "text/html",
        page.response?.mimeType as Any)
}

private func errors(_ origin: URL) {
    var nowhere = URLRequest(url: origin)
    nowhere.url = nil
    let none = ask(nowhere).error
    Check.that("a request without a URL", (none as? URLError)?.code == .unsupportedURL, none as Any)
    let page = ask(URLRequest(url: URL(string: "page")!)).error
    Check.that("a URL without a scheme", (page as? URLError)?.code == .unsupportedURL, page as Any)
    let lost = ask(URLRequest(url: origin.appendingPathComponent("cut"))).error
    let words = lost?.localizedDescription ?? ""
    let isSentence =
        words.first?.isUppercase == true && words.last == "." && !words.contains("(") && !words.contains(":")
    Check.that("the user is told a sentence", isSentence, words)
}
