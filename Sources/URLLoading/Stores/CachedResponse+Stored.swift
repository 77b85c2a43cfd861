// Between what callers hold and what storages keep.

import FoundationEssentials
import URLLoadingWire

extension CachedResponse {
    /// `nil` for what no cache keeps: other schemes and methods than GET over http, what may not be stored, and what
    /// answers to nothing that a request says (RFC 9110 §12.5.5: `Vary: *`).
    func stored(for request: Request, now: Double) -> StoredResponse? {
        guard storagePolicy != .notAllowed, request.method == .get, let http = response.http,
            let key = CacheKey(request)
        else { return nil }
        var stored = StoredResponse(
            key: key, url: response.url.storedText, status: http.status, version: http.version,
            headers: http.headers.withoutHopFields, requestTime: now, responseTime: now)
        guard let varying = http.headers.varying(over: request.headers) else { return nil }
        stored.varying = varying
        stored.extent = .whole(Int64(data.count))
        stored.isDecoded = true
        stored.isMemoryOnly = storagePolicy == .allowedInMemoryOnly
        stored.userInfo = userInfo.map { Array($0) }
        return stored
    }

    /// `nil` if its URL is none: a storage that was tampered with.
    init?(_ stored: StoredResponse, data: Data) {
        guard let url = URL(string: stored.url) else { return nil }
        let http = HTTPHead(status: stored.status, version: stored.version, headers: stored.headers)
        self.init(
            response: Response(url: url, expectedLength: Int64(data.count), http: http), data: data,
            userInfo: stored.userInfo.map { Data($0) },
            storagePolicy: stored.isMemoryOnly ? .allowedInMemoryOnly : .allowed)
    }
}

extension StoredResponse {
    /// Whether it answers a request with these fields. One that the request leaves to its session may have been
    /// anything.
    func mayAnswer(_ headers: Headers) -> Bool {
        varying.allSatisfy { name, value in
            let name = FieldName(name)
            return !headers.contains(name) || headers[name] == value
        }
    }
}

extension Headers {
    /// What these fields of a response say that it varies by, with the values of a request; `nil` if it varies by
    /// everything.
    func varying(over request: Headers) -> [String: String?]? {
        var varying: [String: String?] = [:]
        for name in self["Vary"]?.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) ?? [] {
            if name == "*" { return nil }
            varying.updateValue(request[FieldName(String(name))], forKey: name.lowercased())
        }
        return varying
    }

    /// Those that are meant for more than one connection (RFC 9111 §3.1, RFC 9110 §7.6.1).
    var withoutHopFields: Headers {
        var fields = self
        let named = self["Connection"]?.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) ?? []
        for name in named { fields.remove(FieldName(String(name))) }
        for name in Self.hopFields { fields.remove(name) }
        return fields
    }
    private static let hopFields: [FieldName] = [
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authentication-Info",
        "Proxy-Authorization", "TE", "Transfer-Encoding", "Upgrade",
    ]
}

extension URL {
    /// Without user and fragment.
    var storedText: String {
        let text = withoutUserinfo.absoluteString
        return text.firstIndex(of: "#").map { String(text[..<$0]) } ?? text
    }
}
