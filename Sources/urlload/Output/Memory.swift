// SPDX-License-Identifier: Apache-2.0

// The files of `--cookies`, `-b`, `-c` and `--hsts`: read before the first load, written after the last. A file is
// replaced in one step and readable by its owner alone, because cookies grant access to accounts. A symbolic link is
// kept and its target replaced; a device or a pipe is written to.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingIO

struct Memory: Sendable {
    let cookies = CookieStore()
    let hsts = HSTSStore()
    private let options: MemoryOptions
    /// Messages about arguments of `-b` that are not cookies.
    let complaints: [String]

    /// - Parameter urls: the URLs of the loads; their hosts get the cookies of `-b`.
    init(_ options: Options, _ urls: [String]? = nil) throws(OutputError) {
        self.options = options.memory
        for path in options.memory.cookieInputs {
            let text = try Self.text(path)
            cookies.set(netscapeText: options.memory.dropsSessionCookies ? Self.withoutSessionCookies(text) : text)
        }
        for url in (urls ?? options.urls).compactMap({ AddressText.url($0) }) {
            for text in options.memory.cookies { Self.set(text, for: url, in: cookies) }
        }
        complaints = options.memory.cookies.flatMap { text in
            text.split(separator: ";").map(\.trimmed).filter { !$0.isEmpty && Self.cookie($0[...], "a") == nil }
                // The text after the equals sign may be a secret, and so may a text without one.
                .map {
                    "-b: this is not a cookie and is not sent: "
                        + ($0.contains("=") ? "\($0.prefix { $0 != "=" })=…" : "a text without \"=\"")
                }
        }
        if let path = options.memory.hstsFile { for host in HSTSFile.read(try Self.text(path)) { hsts.set(host) } }
    }

    /// Returns the lines of persistent cookies, whose fifth column is not 0.
    private static func withoutSessionCookies(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).filter { line in
            let columns = line.split(separator: "\t", omittingEmptySubsequences: false)
            return columns.count < 5 || columns[4] != "0"
        }.joined(separator: "\n") + "\n"
    }

    /// Sets host-only cookies: a redirect to another host does not get them.
    private static func set(_ text: String, for url: URL, in store: CookieStore) {
        guard let host = url.host() else { return }
        for pair in text.split(separator: ";") { if let cookie = cookie(pair, host) { store.set(cookie) } }
    }

    private static func cookie(_ pair: Substring, _ host: String) -> Cookie? {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        return parts.count == 2 ? Cookie(name: parts[0].trimmed, value: parts[1].trimmed, domain: host) : nil
    }

    /// Returns an empty text if the file does not exist yet.
    private static func text(_ path: String) throws(OutputError) -> String {
        guard FileManager.default.fileExists(atPath: path) else { return "" }
        // Opened as a descriptor, because it may be a device or a pipe.
        let number = open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw OutputError.system(errno, path, .read) }
        defer { close(number) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(number, &buffer, buffer.count)
            if count > 0 {
                bytes += buffer[..<count]
            } else if count == 0 {
                break
            } else if errno != EINTR {
                throw OutputError.system(errno, path, .read)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    func write(_ screen: Screen) -> ExitCode {
        do throws(OutputError) {
            if let path = options.cookieOutput {
                if options.createsCookieFolder { try Self.createFolder(of: path) }
                try Self.write(cookies.netscapeText, path)
            }
            if let path = options.hstsFile { try Self.write(HSTSFile.text(hsts.all), path) }
            return .done
        } catch {
            screen.message(error.words)
            return error.code
        }
    }

    private static func createFolder(of path: String) throws(OutputError) {
        let folder = URL(filePath: path).deletingLastPathComponent().path
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw OutputError(.write, "\(folder): \(LoadError.systemWords(error) ?? "cannot be created")")
        }
    }

    private static func write(_ text: String, _ path: String) throws(OutputError) {
        guard path != "-" else { return try FileDescriptor.standardOutput.write(text) }
        guard let path = try target(path) else { return try writeInPlace(text, path) }
        do {
            let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
            // The temporary name is independent of the file's name, which may have the maximum length already.
            let file = try FileWriter.createPartial(in: folder, prefix: ".urlload-")
            try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
            try file.synchronize()
            try file.move(from: file.path, to: path, replacing: true, synchronizes: false)
        } catch let failure as IOFailure {
            if case .system(let number) = failure.code { throw OutputError.system(number, path) }
            throw OutputError(.write, "\(path): cannot be written")
        } catch {
            throw OutputError(.write, "\(path): cannot be written")
        }
    }
}

extension Memory {
    /// Returns the path to replace, with symbolic links followed, or a path that does not exist yet; `nil` for a device
    /// or a pipe.
    private static func target(_ path: String) throws(OutputError) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            // A link whose target does not exist is written to, which creates the target.
            return lstat(path, &status) == 0 ? nil : path
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        guard let real = realpath(path, nil) else { throw .system(errno, path) }
        defer { free(real) }
        return String(cString: real)
    }

    private static func writeInPlace(_ text: String, _ path: String) throws(OutputError) {
        let number = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .system(errno, path) }
        defer { close(number) }
        try FileDescriptor(number: number, name: path).write(text)
    }
}

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
