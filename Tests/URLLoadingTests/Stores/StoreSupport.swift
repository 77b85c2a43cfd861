// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingTesting
import URLLoadingWire

@testable import URLLoading

/// A folder of a test's own, gone when it ends.
func withStoreFolder<R>(_ use: (URL) throws -> R) rethrows -> R {
    let folder = temporaryURL("store", isDirectory: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try use(folder)
}

extension URL {
    var plainPath: String { path(percentEncoded: false) }
}

extension StoredResponse {
    /// A response under a key `/name`.
    static func of(_ name: String, headers: Headers = [:], varying: [String: String?] = [:], at time: Double = 1_000)
        -> StoredResponse
    {
        var response = StoredResponse(
            key: CacheKey(text: "https://a.test/" + name), url: "https://a.test/" + name, status: .ok, version: .http11,
            headers: headers, requestTime: time, responseTime: time)
        response.varying = varying
        return response
    }
}

/// Bytes that hardly another name has; at most a million.
func storedBytes(_ name: String, _ count: Int) -> [UInt8] {
    let start = Int(UInt64(bitPattern: StableHash.of(name)) % 40_000)
    return Array(randomBlock[start..<start + count])
}

private let randomBlock: [UInt8] = {
    var generator = SeededGenerator(seed: 1)
    return (0..<131_072).flatMap { _ in withUnsafeBytes(of: generator.next()) { Array($0) } }
}()

extension CacheStorage {
    @discardableResult
    func store(_ name: String, _ count: Int, at time: Double = 1_000) -> Bool {
        store(.of(name, headers: ["X-Name": name], at: time), body: storedBytes(name, count))
    }

    /// The bytes under a name, if they are there.
    func bytes(_ name: String) -> [UInt8]? {
        for stored in variants(CacheKey(text: "https://a.test/" + name)) {
            if let whole = body(stored)?.whole { return [UInt8](whole) }
        }
        return nil
    }

    func isRight(_ name: String, _ count: Int) -> Bool { bytes(name) == storedBytes(name, count) }
}

extension Chunk {
    init(_ bytes: [UInt8]) { self = bytes.withUnsafeBytes { Chunk(copying: $0) } }
}

/// The room that the files of a folder take on the disk, in bytes: holes take none.
func roomUnder(_ folder: URL) -> Int {
    filesUnder(folder).keys.reduce(0) { total, name in
        var info = stat()
        return lstat(folder.appending(path: name).plainPath, &info) == 0 ? total + Int(info.st_blocks) * 512 : total
    }
}

/// All bytes in a folder, by file.
func filesUnder(_ folder: URL) -> [String: Int] {
    var sizes: [String: Int] = [:]
    for name in (try? FileManager.default.subpathsOfDirectory(atPath: folder.plainPath)) ?? [] {
        let attributes = try? FileManager.default.attributesOfItem(atPath: folder.appending(path: name).plainPath)
        guard attributes?[.type] as? FileAttributeType == .typeRegular else { continue }
        sizes[name] = attributes?[.size] as? Int ?? 0
    }
    return sizes
}
