// The files of `--cookies`, `-b`, `-c` and `--hsts`: read before anything is loaded, written when all is. They are
// replaced in one step, and readable by their owner alone: a cookie is a key to somebody's account.

import FoundationEssentials
import URLLoading
import URLLoadingIO

struct Memory: Sendable {
    let cookies = CookieStore()
    let hsts = HSTSStore()
    private let options: MemoryOptions

    init(_ options: Options) throws(OutputError) {
        self.options = options.memory
        for path in options.memory.cookieInputs { cookies.set(netscapeText: try Self.text(path)) }
        for url in options.urls.compactMap({ AddressText.url($0) }) {
            for text in options.memory.cookies { set(text, for: url) }
        }
        if let path = options.memory.hstsFile { for host in HSTSFile.read(try Self.text(path)) { hsts.set(host) } }
    }

    /// To the host they are for, and to no other that a redirect leads to.
    private func set(_ text: String, for url: URL) {
        guard let host = url.host() else { return }
        for pair in text.split(separator: ";") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let cookie = Cookie(name: parts[0].trimmed, value: parts[1].trimmed, domain: host) else { continue }
            cookies.set(cookie)
        }
    }

    /// Nothing, if it is not there yet.
    private static func text(_ path: String) throws(OutputError) -> String {
        guard FileManager.default.fileExists(atPath: path) else { return "" }
        do { return String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self) } catch {
            throw OutputError(.read, "\(path): cannot be read")
        }
    }

    func write(_ screen: Screen) -> ExitCode {
        do throws(OutputError) {
            if let path = options.cookieOutput { try Self.write(cookies.netscapeText, path) }
            if let path = options.hstsFile { try Self.write(HSTSFile.text(hsts.all), path) }
            return .done
        } catch {
            screen.message(error.words)
            return error.code
        }
    }

    private static func write(_ text: String, _ path: String) throws(OutputError) {
        guard path != "-" else { return try FileDescriptor.standardOutput.write(text) }
        do {
            let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
            // Its name has nothing of the other's, which may be as long as a name can be.
            let file = try FileWriter.create(in: folder, prefix: ".urlload-")
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

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
