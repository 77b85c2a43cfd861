// SPDX-License-Identifier: Apache-2.0

// An image loader: URLCache answers the second time, and a changed image is asked for by its ETag.

import Foundation

#if CLASSIC_LAYER
import URLLoadingCompatibility
#else
import FoundationNetworking
#endif

private final class ImageLoader: @unchecked Sendable {
    let cache = URLCache(memoryCapacity: 8 << 20, diskCapacity: 0, diskPath: nil)
    private let session: URLSession

    init() {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = cache
        session = URLSession(configuration: configuration)
    }

    func image(_ url: URL, _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy) -> (Data?, (any Error)?) {
        final class Box: @unchecked Sendable { var result: (Data?, (any Error)?) = (nil, nil) }
        let box = Box()
        let done = Signal()
        session.dataTask(with: URLRequest(url: url, cachePolicy: policy, timeoutInterval: 5)) { data, _, error in
            box.result = (data, error)
            done.fire()
        }.resume()
        done.wait("an image")
        return box.result
    }
}

func runImages(_ origin: URL) {
    let loader = ImageLoader()
    let fresh = origin.appendingPathComponent("image")
    let first = loader.image(fresh).0
    Check.that("an image", first?.count == 20_000, first?.count as Any)
    Check.that("it is in the cache", loader.cache.cachedResponse(for: URLRequest(url: fresh))?.data == first)
    Check.that(
        "the second time it is not loaded", loader.image(fresh).0 == first && asked(origin, "image") == 1,
        asked(origin, "image"))
    Check.that(
        "unless the caller wants it",
        loader.image(fresh, .reloadIgnoringLocalCacheData).0?.count == 20_000 && asked(origin, "image") == 2)
    Check.that("without a network", loader.image(fresh, .returnCacheDataDontLoad).0 == first)
    let unknown = loader.image(origin.appendingPathComponent("text"), .returnCacheDataDontLoad)
    Check.that("what was never loaded is an error", unknown.1 != nil && unknown.0 == nil)

    let tagged = origin.appendingPathComponent("tagged")
    _ = loader.image(tagged)
    Check.that(
        "a 304 serves what is kept", loader.image(tagged).0?.count == 20_000 && asked(origin, "not-modified") == 1,
        asked(origin, "not-modified"))
    loader.cache.removeAllCachedResponses()
    Check.that(
        "all forgotten",
        loader.cache.cachedResponse(for: URLRequest(url: fresh)) == nil && loader.cache.currentMemoryUsage == 0)
}

/// How often the origin was asked for something: it counts.
private func asked(_ origin: URL, _ what: String) -> Int {
    final class Box: @unchecked Sendable { var count = -1 }
    let box = Box()
    let done = Signal()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    URLSession(configuration: configuration).dataTask(with: origin.appendingPathComponent("count/\(what)")) {
        data, _, _ in
        box.count = data.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? -1
        done.fire()
    }.resume()
    done.wait("a count")
    return box.count
}
