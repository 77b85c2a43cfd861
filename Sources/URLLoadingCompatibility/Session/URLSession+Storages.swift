// SPDX-License-Identifier: Apache-2.0

// Resetting and flushing the storages of a session.

import Foundation
import URLLoading
import URLLoadingIO

extension URLSession {
    final var cache: URLCache? { values.cache }
    final var additionalHeaders: [AnyHashable: Any]? { values.headers }

    /// The queue on which storages may wait for the disk.
    static let keeping = DispatchQueue(label: "URLSession.storages")

    final func forget() {
        values.cookies?.removeCookies(since: .distantPast)
        values.cache?.removeAllCachedResponses()
        if let credentials = values.credentials {
            for (space, users) in credentials.allCredentials {
                for credential in users.values { credentials.remove(credential, for: space) }
            }
        }
        // Bearer tokens, which the classic API does not list; and all credentials of a session without a storage.
        core.configuration.authentication.credentialStore?.removeAll()
        core.closeIdleConnections()
    }

    final func writeOut() async {
        if let cache = values.cache { _ = await BlockingThreads.files.call(.never) { cache.core.flush() } }
        await values.cookies?.store.flush()
        core.closeIdleConnections()
    }

    /// The async form of ``reset(completionHandler:)``.
    public func reset() async {
        await withUnsafeContinuation { done in reset { done.resume() } }
    }

    /// The async form of ``flush(completionHandler:)``.
    public func flush() async {
        await withUnsafeContinuation { done in flush { done.resume() } }
    }
}
