// SPDX-License-Identifier: Apache-2.0

// Files of tests. They are in the folder of temporary files, which is the test process's own and is removed at its end
// (`Tests/Home`).

package import FoundationEssentials
package import Glibc

/// Returns a path at which there is nothing yet.
package func temporaryURL(_ name: String, isDirectory: Bool = false) -> URL {
    let number = String(UInt64.random(in: 0 ... .max), radix: 36)
    return FileManager.default.temporaryDirectory.appending(
        path: "\(name)-\(number)", directoryHint: isDirectory ? .isDirectory : .notDirectory)
}

/// Creates an empty folder.
package func makeTemporaryFolder(_ name: String) throws -> URL {
    let url = temporaryURL(name, isDirectory: true)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url
}

/// Passes a path at which there is nothing yet, and removes its files after the closure.
package func withTemporaryURL<R>(
    _ name: String, isDirectory: Bool = false, _ use: (URL) throws -> R
) rethrows -> R {
    let url = temporaryURL(name, isDirectory: isDirectory)
    defer { try? FileManager.default.removeItem(at: url) }
    return try use(url)
}

/// Passes a path at which there is nothing yet, and removes its files after the closure.
package nonisolated(nonsending) func withTemporaryURL<R>(
    _ name: String, isDirectory: Bool = false, _ use: nonisolated(nonsending) (URL) async throws -> R
) async rethrows -> R {
    let url = temporaryURL(name, isDirectory: isDirectory)
    defer { try? FileManager.default.removeItem(at: url) }
    return try await use(url)
}

/// An empty folder, which is removed with its last reference.
package final class TemporaryFolder: Sendable {
    /// The path, without a slash at its end.
    package let path: String

    package init(_ name: String = "urlloading") throws {
        path = temporaryURL(name).path(percentEncoded: false)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    package func url(_ name: String) -> URL { URL(filePath: "\(path)/\(name)") }

    /// The names of its files, sorted.
    package var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path))?.sorted() ?? [] }

    package func bytes(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: url(name))) }

    /// Writes a file, and returns its URL.
    package func write(_ name: String, _ content: Data) throws -> URL {
        try content.write(to: url(name))
        return url(name)
    }

    /// The permissions of a file; 0 if there is none.
    package func mode(_ name: String) -> mode_t {
        var status = stat()
        return stat("\(path)/\(name)", &status) == 0 ? status.st_mode & 0o7777 : 0
    }
}
