// SPDX-License-Identifier: Apache-2.0

// Writes the HTTP Archive of `--har` after the last load.

import FoundationEssentials
import URLLoading

enum Archive {
    static func archiver(_ options: Options) -> HTTPArchiver {
        HTTPArchiver(
            contents: options.output.showsSecrets ? .secrets : [], creator: "urlload", version: Help.versionNumber)
    }

    static func write(_ archive: HTTPArchive, to path: String, _ screen: Screen) -> ExitCode {
        do throws(OutputError) {
            let text = String(decoding: archive.json, as: UTF8.self) + "\n"
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
