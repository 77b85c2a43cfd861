// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Returns a path in the folder of temporary files at which there is nothing yet. The folder is the test process's own,
/// and is removed at its end (`Tests/Home`).
package func temporaryURL(_ name: String, isDirectory: Bool = false) -> URL {
    let number = String(UInt64.random(in: 0 ... .max), radix: 36)
    return FileManager.default.temporaryDirectory.appending(
        path: "\(name)-\(number)", directoryHint: isDirectory ? .isDirectory : .notDirectory)
}
