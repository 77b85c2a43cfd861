// The file in which FoundationNetworking keeps the cookies of `HTTPCookieStorage.shared`: a property list in XML, a
// dictionary of cookies by domain, path and name.

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

extension CookieStore {
    /// Sets the cookies that FoundationNetworking has kept for a program, which moves to this library.
    ///
    /// ```swift
    /// let old = URL(filePath: "/home/ada/.local/share/bin/.cookies.shared")
    /// let count = try CookieStore.standard.importing(foundationNetworkingFile: old)
    /// ```
    /// The file is `$XDG_DATA_HOME/<folder>/.cookies.shared`, or `~/.local/share/<folder>/.cookies.shared`, where the folder has
    /// the name of the one that the program's file is in. It is read and not changed, and never without this call. Cookies
    /// that have ended, and those that no store takes, are passed over: see
    /// ``Cookie/init(name:value:domain:isHostOnly:path:expires:isSecure:isHTTPOnly:sameSite:)``, which also refuses a domain
    /// that is a public suffix. FoundationNetworking does not write down that a cookie is for HTTP alone. Blocks while it reads.
    /// - Parameter file: a `file` URL of a regular file of at most 4 MiB.
    /// - Returns: how many cookies were kept.
    /// - Throws: ``LoadError/Reason/fileNotFound``, ``LoadError/Reason/noPermission``;
    ///   ``LoadError/Reason/cannotReadFile`` for what is no such file.
    @discardableResult
    public func importing(foundationNetworkingFile file: URL) throws(LoadError) -> Int {
        let cookies: [Cookie]
        do throws(LoadError) {
            cookies = try FoundationNetworkingCookieFile.cookies(in: try FoundationNetworkingCookieFile.read(file))
        } catch { throw error.at(file) }
        let now = Date.now
        return set(cookies.filter { !$0.isExpired(now) }, isSecure: true).count
    }
}

enum FoundationNetworkingCookieFile {
    private static let mostBytes = 4 << 20
    /// The file has three levels; the parser calls itself for each, and a file of many would exhaust the stack.
    private static let mostLevels = 8

    static func read(_ file: URL) throws(LoadError) -> Data {
        guard file.isFileURL else { throw refusal("it is not the URL of a file") }
        let reader: FileReader
        do throws(IOFailure) { reader = try FileReader(path: file.path(percentEncoded: false)) } catch { throw LoadError(file: error) }
        guard reader.kind == .file, reader.size <= mostBytes else { throw refusal("it is no regular file, or larger than 4 MiB") }
        do throws(IOFailure) {
            var bytes = [UInt8](repeating: 0, count: Int(reader.size)), count = 0
            while count < bytes.count {
                let read = bytes.withUnsafeMutableBytes { buffer in
                    Result { () throws(IOFailure) in
                        try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]), at: Int64(count))
                    }
                }
                let added = try read.get()
                if added == 0 { break }
                count += added
            }
            return Data(bytes[..<count])
        } catch { throw LoadError(file: error) }
    }

    static func cookies(in data: Data) throws(LoadError) -> [Cookie] {
        guard levels(data) <= mostLevels else { throw refusal("it is nested too deeply") }
        do {
            return try PropertyListDecoder().decode([String: Entry].self, from: data).values.compactMap(\.cookie)
        } catch { throw refusal("it is not a property list of cookies") }
    }

    private static func refusal(_ detail: String) -> LoadError {
        LoadError(
            .cannotReadFile, phase: .decoding, party: .local,
            detail: "not a cookie file of FoundationNetworking: \(detail)")
    }

    /// How deep the elements with content of an XML property list lie in each other, comments and texts included.
    private static func levels(_ data: Data) -> Int {
        var deepest = 0, level = 0
        data.withUnsafeBytes { bytes in
            for place in bytes.indices.dropLast() where bytes[place] == UInt8(ascii: "<") {
                let next = bytes[place + 1]
                if next == UInt8(ascii: "/") { level -= 1 } else if next == UInt8(ascii: "d") || next == UInt8(ascii: "a") { level += 1 }
                deepest = max(deepest, level)
            }
        }
        return deepest
    }

    /// One cookie; without one where a value is missing or of another type.
    private struct Entry: Decodable {
        let cookie: Cookie?

        private enum Key: String, CodingKey {
            case name = "Name", value = "Value", domain = "Domain", path = "Path", expires = "Expires", secure = "Secure"
        }

        init(from decoder: any Decoder) {
            cookie = try? Self.cookie(decoder)
        }

        private static func cookie(_ decoder: any Decoder) throws -> Cookie? {
            let values = try decoder.container(keyedBy: Key.self)
            let domain = try values.decode(String.self, forKey: .domain)
            return Cookie(
                name: try values.decode(String.self, forKey: .name), value: try values.decode(String.self, forKey: .value),
                domain: domain, isHostOnly: !domain.hasPrefix("."), path: try values.decode(String.self, forKey: .path),
                expires: try values.decodeIfPresent(Double.self, forKey: .expires).map { Date(timeIntervalSince1970: $0) },
                isSecure: try values.decodeIfPresent(Bool.self, forKey: .secure) ?? false)
        }
    }
}
