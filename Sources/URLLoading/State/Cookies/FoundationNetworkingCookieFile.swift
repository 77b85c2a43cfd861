// SPDX-License-Identifier: Apache-2.0

// The file of FoundationNetworking's `HTTPCookieStorage.shared`: an XML property list with a dictionary of cookies by
// domain, path and name.

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension CookieStore {
    /// Imports the cookies that FoundationNetworking has stored for a program that moves to this library.
    ///
    /// ```swift
    /// let old = URL(filePath: "/home/ada/.local/share/bin/.cookies.shared")
    /// let count = try CookieStore.shared.importCookies(foundationNetworkingFile: old)
    /// ```
    /// The file is `$XDG_DATA_HOME/<folder>/.cookies.shared`, or `~/.local/share/<folder>/.cookies.shared`, where the
    /// folder is named after the one that contains the program's executable. The file is not changed, and is read only
    /// by this call. Expired cookies, and those that no store accepts, are skipped; see
    /// ``Cookie/init(name:value:domain:isHostOnly:path:expires:isSecure:isHTTPOnly:sameSite:)``, which also rejects
    /// public suffixes. FoundationNetworking does not store whether a cookie is for HTTP only. Blocks while it reads.
    /// - Parameter file: a `file` URL of a regular file of at most 4 MiB.
    /// - Returns: the number of cookies stored.
    /// - Throws: ``LoadError/Reason/fileNotFound``, ``LoadError/Reason/noPermission``;
    ///   ``LoadError/Reason/cannotReadFile`` for a file of another format.
    @discardableResult
    public func importCookies(foundationNetworkingFile file: URL) throws(LoadError) -> Int {
        let cookies: [Cookie]
        do throws(LoadError) {
            cookies = try FoundationNetworkingCookieFile.cookies(in: try FoundationNetworkingCookieFile.read(file))
        } catch { throw error.at(file) }
        let now = Date.now
        return set(cookies.filter { !$0.isExpired(now) }, isSecure: true).count
    }
}

enum FoundationNetworkingCookieFile {
    private static let maximumBytes: Int64 = 4 << 20

    static func read(_ file: URL) throws(LoadError) -> [UInt8] {
        guard file.isFileURL else { throw refusal("it is not the URL of a file") }
        let content: [UInt8]?
        do throws(IOFailure) {
            content = try FileReader.content(of: file.path(percentEncoded: false), limit: maximumBytes)
        } catch { throw LoadError(file: error) }
        guard let content else { throw refusal("it is no regular file, or larger than 4 MiB") }
        return content
    }

    static func cookies(in bytes: some Sequence<UInt8>) throws(LoadError) -> [Cookie] {
        guard let found = FoundationNetworkingCookie.cookies(in: bytes) else {
            throw refusal("it is not a property list of cookies in XML")
        }
        return found.compactMap { Cookie($0) }
    }

    private static func refusal(_ detail: String) -> LoadError {
        LoadError(
            .cannotReadFile, phase: .decoding, party: .local,
            detail: "not a cookie file of FoundationNetworking: \(detail)")
    }
}

extension Cookie {
    fileprivate init?(_ cookie: FoundationNetworkingCookie) {
        self.init(
            name: cookie.name, value: cookie.value, domain: cookie.domain, isHostOnly: !cookie.domain.hasPrefix("."),
            path: cookie.path, expires: cookie.expires.map { Date(timeIntervalSince1970: $0) },
            isSecure: cookie.isSecure)
    }
}
