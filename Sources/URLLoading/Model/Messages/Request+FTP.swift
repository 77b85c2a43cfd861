// SPDX-License-Identifier: Apache-2.0

// The property of an FTP request, which has no header fields.

extension Request {
    private enum StoreOffset: PropertyKey { typealias Value = Int64 }

    /// The offset in the server's file at which the body of an `ftp` upload begins, in bytes, at least 0 (REST, then
    /// STOR). The body is then the rest of the file. `nil`, the default, stores the whole file.
    ///
    /// ```swift
    /// let (_, there) = try await session.data(for: Request(url: url, method: .head))
    /// request.ftpStoreOffset = there.expectedLength
    /// request.body = .file(film, range: there.expectedLength!..<size)
    /// ```
    public var ftpStoreOffset: Int64? {
        get { properties[StoreOffset.self] }
        set { properties[StoreOffset.self] = newValue.map { max(0, $0) } }
    }
}
