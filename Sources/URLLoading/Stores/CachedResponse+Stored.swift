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
            headers: http.headers.kept, requestTime: now, responseTime: now)
        guard var varying = Varying.make(http.headers, CacheQuery(request)) else { return nil }
        // Whoever takes an entry out and puts it back makes it nobody else's.
        for (name, owner) in response.properties[StoredOwner.self] ?? [:] { varying[name] = .some(owner) }
        stored.varying = varying
        stored.extent = .whole(Int64(data.count))
        stored.isDecoded = true
        stored.source = response.properties[StoredSource.self] ?? .unknown
        stored.isMemoryOnly = storagePolicy == .allowedInMemoryOnly || CacheOwner.isPassing(varying)
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
        response.properties[StoredTimes.self] = StoredTimes.Value(
            request: stored.requestTime, response: stored.responseTime)
        let owner = stored.varying.filter { CacheOwner.names.contains($0.key) }.compactMapValues { $0 }
        if !owner.isEmpty { response.properties[StoredOwner.self] = owner }
        if stored.source != .unknown { response.properties[StoredSource.self] = stored.source }
    }
}

extension URL {
    /// Without user and fragment.
    var storedText: String {
        let text = withoutUserinfo.absoluteString
        return text.firstIndex(of: "#").map { String(text[..<$0]) } ?? text
    }
}
