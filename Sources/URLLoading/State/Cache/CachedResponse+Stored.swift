// SPDX-License-Identifier: Apache-2.0

// Converts between the entries of callers and the stored responses of storages.

import FoundationEssentials
import URLLoadingWire

extension CachedResponse {
    /// Returns the response to store; `nil` if no cache may store it: a method other than GET, a scheme other than http
    /// and https, a policy that forbids it, or `Vary: *` (RFC 9110 §12.5.5).
    func stored(for request: Request, now: Double) -> StoredResponse? {
        guard storagePolicy != .notAllowed, request.method == .get, let http = response.http,
            let key = CacheKey(request)
        else { return nil }
        var stored = StoredResponse(
            key: key, url: response.url.storedText, status: http.status, version: http.version,
            headers: http.headers.kept, requestTime: now, responseTime: now)
        guard var varying = Varying.make(http.headers, CacheQuery(request)) else { return nil }
        // The owner stays the same if the caller looks an entry up and stores it again.
        for (name, owner) in response.properties[StoredOwner.self] ?? [:] { varying[name] = .some(owner) }
        stored.varying = varying
        stored.extent = .whole(Int64(data.count))
        stored.isDecoded = true
        stored.source = response.properties[StoredSource.self] ?? .unknown
        stored.isMemoryOnly = storagePolicy == .allowedInMemoryOnly || CacheOwner.isTemporary(varying)
        stored.userInfo = userInfo.map { Array($0) }
        return stored
    }

    /// Fails if the URL is invalid, because the storage was tampered with.
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
    /// The URL without user and fragment.
    var storedText: String {
        let text = withoutUserinfo.absoluteString
        return text.firstIndex(of: "#").map { String(text[..<$0]) } ?? text
    }
}
