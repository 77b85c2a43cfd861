// SPDX-License-Identifier: Apache-2.0

// The stores in a configured directory: all sessions of this process that name the directory share the same objects.

import FoundationEssentials
import Synchronization
import URLLoadingIO

final class SharedStores: Sendable {
    let cache: ResponseCache
    let cookies: CookieStore
    let strictTransport: HSTSStore
    let credentials: CredentialStore

    private init(_ directory: URL) {
        cache = ResponseCache(directory: directory)
        cookies = CookieStore(directory: directory)
        strictTransport = HSTSStore(directory: directory)
        credentials = CredentialStore(file: directory.appending(path: "credentials.json", directoryHint: .notDirectory))
    }

    private struct WeakStores: Sendable { weak var stores: SharedStores? }
    private static let known = Lock([String: WeakStores]())

    /// Returns the stores that a configuration names; `nil` for the default directories or an ephemeral session.
    static func of(_ configuration: Configuration) -> SharedStores? {
        guard !configuration.isEphemeral, let directory = configuration.storageDirectory else { return nil }
        let path = directory.standardizedFileURL.path(percentEncoded: false)
        return known.withLock { known in
            if let stores = known[path]?.stores { return stores }
            known = known.filter { $0.value.stores != nil }
            let stores = SharedStores(directory)
            known[path] = WeakStores(stores: stores)
            return stores
        }
    }
}

extension Configuration {
    /// Returns the configuration with these stores in place of the default ones. Stores that were set explicitly stay.
    func keeping(in stores: SharedStores) -> Configuration {
        var configuration = self
        if caching.store === ResponseCache.shared { configuration.caching.store = stores.cache }
        if case .automatic = cookies.storage { configuration.cookies.storage = .store(stores.cookies) }
        if case .automatic = hsts.storage {
            configuration.hsts.storage = .store(stores.strictTransport)
        }
        return configuration
    }
}
