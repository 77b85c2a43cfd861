// Where the bytes of a response go.

import FoundationEssentials
import Glibc
import URLLoading

enum BodyOutput {
    case standardOutput
    case file(AtomicFile, name: String)
    /// Counted by others, kept by nobody.
    case none

    init(_ options: Options, _ url: URL) throws(OutputError) {
        switch options.destination {
        case .standardOutput: self = options.printsJSON ? .none : .standardOutput
        case .file(let path): self = .file(try AtomicFile(path: path), name: path)
        case .namedAfterURL:
            let name = FileName.make(for: url)
            self = .file(try AtomicFile(path: name), name: name)
        }
    }

    var fileName: String? {
        if case .file(_, let name) = self { name } else { nil }
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(OutputError) {
        switch self {
        case .standardOutput: try FileDescriptor.standardOutput.write(bytes)
        case .file(let file, _): try file.write(bytes)
        case .none: break
        }
    }

    func write(_ text: String) throws(OutputError) {
        var failure: OutputError?
        Array(text.utf8).withUnsafeBytes { bytes in
            do throws(OutputError) { try write(bytes) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    func commit() throws(OutputError) {
        if case .file(let file, _) = self { try file.commit() }
    }
}
