// SPDX-License-Identifier: Apache-2.0

// Converts a transaction to a HAR entry, without its secrets.

import FoundationEssentials
import URLLoadingWire

struct HAREntryWriter {
    let showsSecrets: Bool

    func entry(_ transaction: LoadMetrics.Transaction) -> HAR.Entry {
        let timings = HARTimings(transaction)
        return HAR.Entry(
            began: transaction.fetchStart.date, startedDateTime: HAR.text(transaction.fetchStart.date),
            time: timings.time,
            request: request(transaction), response: response(transaction), timings: timings,
            serverIPAddress: transaction.remoteAddress, connection: transaction.connectionID.map(String.init))
    }

    private func request(_ transaction: LoadMetrics.Transaction) -> HAR.Request {
        let request = transaction.request
        let isSent = transaction.requestStart != nil
        let text = request.url.absoluteString
        return HAR.Request(
            method: request.method.rawValue, url: shown(String(text.prefix { $0 != "#" })),
            httpVersion: (transaction.sentVersion ?? .http11).description,
            cookies: cookies(transaction.requestHeaders),
            headers: pairs(transaction.requestHeaders), queryString: query(text),
            headersSize: isSent ? transaction.requestHeadBytes : -1,
            bodySize: isSent ? transaction.requestBodyBytes : -1)
    }

    private func response(_ transaction: LoadMetrics.Transaction) -> HAR.Response {
        let response = transaction.response
        let head = response?.http
        let headers = head?.headers ?? Headers()
        let isReceived = head != nil && transaction.fetchType == .network
        return HAR.Response(
            status: head?.status.code ?? 0, statusText: head?.reasonPhrase ?? "",
            httpVersion: head?.version.description ?? "", cookies: setCookies(headers), headers: pairs(headers),
            content: content(transaction, headers), redirectURL: shown(headers[.location] ?? ""),
            headersSize: isReceived ? transaction.responseHeadBytes : -1,
            bodySize: response == nil ? -1 : transaction.responseBodyBytes, _error: transaction.error?.reason.name,
            _violations: transaction.violations.isEmpty
                ? nil : transaction.violations.map { "\($0.code.rawValue) (\($0.section))" },
            _tls: HAR.TLS(transaction))
    }

    private func content(_ transaction: LoadMetrics.Transaction, _ headers: Headers) -> HAR.Content {
        let size = transaction.responseContentBytes
        let saved = size - transaction.responseBodyBytes
        return HAR.Content(
            size: size, compression: headers.contains(.contentEncoding) && saved > 0 ? saved : nil,
            mimeType: transaction.response?.mediaType?.description ?? headers[.contentType] ?? "x-unknown")
    }

    // MARK: Fields

    private func pairs(_ headers: Headers) -> [HAR.Pair] {
        headers.map { HAR.Pair(name: $0.name.description, value: isSecret($0.name) ? Secrets.mark : shown($0.value)) }
    }

    private func isSecret(_ name: FieldName) -> Bool { !showsSecrets && name.isSecret }

    private func shown(_ text: String) -> String { showsSecrets ? text : Secrets.hidden(in: text) }

    /// Returns the parameters of a URL, decoded as forms encode them.
    private func query(_ url: String) -> [HAR.Pair] {
        let url = shown(url)
        guard let mark = url.firstIndex(where: { $0 == "?" || $0 == "#" }), url[mark] == "?" else { return [] }
        let query = url[url.index(after: mark)...].prefix { $0 != "#" }
        return query.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return HAR.Pair(
                name: FormCoding.decoded(parts[0]), value: parts.count > 1 ? FormCoding.decoded(parts[1]) : "")
        }
    }

    // MARK: Cookies

    private func cookies(_ headers: Headers) -> [HAR.Cookie] {
        guard showsSecrets else { return [] }
        return headers.values(of: .cookie).flatMap { $0.split(separator: ";") }.map { Self.cookie($0) }
    }

    private func setCookies(_ headers: Headers) -> [HAR.Cookie] {
        guard showsSecrets else { return [] }
        return headers.values(of: .setCookie).map { text in
            let parts = text.split(separator: ";", omittingEmptySubsequences: false)
            var cookie = Self.cookie(parts[0])
            for attribute in parts.dropFirst().map({ Self.cookie($0) }) {
                switch attribute.name.lowercased() {
                case "path": cookie.path = attribute.value
                case "domain": cookie.domain = attribute.value
                case "expires":
                    cookie.expires = CookieDate.parse(attribute.value.utf8).map {
                        HAR.text(Date(timeIntervalSince1970: Double($0)))
                    }
                case "httponly": cookie.httpOnly = true
                case "secure": cookie.secure = true
                default: break
                }
            }
            return cookie
        }
    }

    /// Parses `name=value`; surrounding white space is stripped (RFC 6265 §5.2).
    private static func cookie(_ text: Substring) -> HAR.Cookie {
        func trimmed(_ text: Substring) -> String {
            let isBlank = { (character: Character) in character == " " || character == "\t" }
            return String(text.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
        }
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count > 1 else { return HAR.Cookie(name: trimmed(text), value: "") }
        return HAR.Cookie(name: trimmed(parts[0]), value: trimmed(parts[1]))
    }
}
