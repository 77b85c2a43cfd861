// SPDX-License-Identifier: Apache-2.0

// Writes the HTTP Archive of `--har` after the last load.

import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO

enum Archive {
    static func archiver(_ options: Options) -> HTTPArchiver {
        HTTPArchiver(
            contents: options.output.showsSecrets ? .secrets : [], creator: "urlload", version: Help.versionNumber)
    }

    /// The archives by the paths of their files. Groups of the command line that name the same file share it.
    private static let written = Lock<[String: HTTPArchive]>([:])

    /// Writes the archive of a group, behind those of earlier groups in the same file.
    static func write(_ archive: HTTPArchive, to path: String, _ screen: Screen) -> ExitCode {
        let whole = written.withLock { written -> HTTPArchive in
            // What went to standard output is there already.
            guard path != "-", FileDescriptor.standard(path) == nil, var whole = written[path] else {
                written[path] = archive
                return archive
            }
            whole.append(archive)
            written[path] = whole
            return whole
        }
        do throws(OutputError) {
            let text = String(decoding: whole.json, as: UTF8.self) + "\n"
            guard path != "-" else {
                try FileDescriptor.standardOutput.write(text)
                return .done
            }
            let file = try AtomicFile(path: path)
            try file.write(text)
            try file.commit()
            return .done
        } catch {
            screen.message(error.words)
            return error.code
        }
    }
}
