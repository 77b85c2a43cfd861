// What a session has remembered, forgotten or written.

import Foundation
import URLLoading
import URLLoadingIO

extension URLSession {
    /// Somebody is asked about its requests, and wants to know whose they are.
    final var marksRequests: Bool { ownCache != nil || !values.protocolClasses.isEmpty || !ProtocolClasses.isEmpty }
    final var cache: URLCache? { values.cache }
    final var additionalHeaders: [AnyHashable: Any]? { values.headers }

    /// Where storages may wait for the disk.
    static let keeping = DispatchQueue(label: "URLSession.storages")

    final func forget() {
        values.cookies?.removeCookies(since: .distantPast)
        values.cache?.removeAllCachedResponses()
        if let credentials = values.credentials {
            for (space, users) in credentials.allCredentials {
                for credential in users.values { credentials.remove(credential, for: space) }
            }
        }
        core.closeIdleConnections()
    }

    final func writeOut() async {
        if let cache = values.cache { _ = await BlockingThreads.files.call(.never) { cache.core.flush() } }
        await values.cookies?.store.flush()
        core.closeIdleConnections()
    }

    /// The same as ``reset(completionHandler:)``, awaited.
    public func reset() async {
        await withUnsafeContinuation { done in reset { done.resume() } }
    }

    /// The same as ``flush(completionHandler:)``, awaited.
    public func flush() async {
        await withUnsafeContinuation { done in flush { done.resume() } }
    }
}
