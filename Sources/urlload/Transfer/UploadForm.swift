// SPDX-License-Identifier: Apache-2.0

// The body of `-F`. Files are read while they are sent; pipes and devices are read before the first load (`PipedData`).

import FoundationEssentials
import Glibc
import URLLoading

enum UploadForm {
    static func make(_ fields: [FormField]) throws -> RequestBody? {
        guard !fields.isEmpty else { return nil }
        var form = MultipartForm()
        for field in fields { try append(field, to: &form) }
        return try .multipart(form)
    }

    private static func append(_ field: FormField, to form: inout MultipartForm) throws(OutputError) {
        switch field.content {
        case .text(let text) where field.type == nil: form.append(name: field.name, value: text)
        case .text(let text):
            form.append(name: field.name, data: Data(text.utf8), contentType: field.type)
        case .textOf(let path):
            let bytes = try content(field, path)
            // As in curl, a text part without `;type=` has no Content-Type.
            if field.type == nil, field.fileName == nil, let text = String(validating: bytes, as: UTF8.self) {
                form.append(name: field.name, value: text)
            } else {
                form.append(
                    name: field.name, data: Data(bytes), fileName: field.fileName,
                    contentType: field.type ?? "text/plain")
            }
        case .file(let path):
            // As in curl, the last component of the path; for standard input "-".
            let name = field.fileName ?? path.split(separator: "/").last.map { String($0) } ?? path
            if field.bytes == nil, path != "-", try isRegular(path) {
                form.append(name: field.name, file: URL(filePath: path), fileName: name, contentType: field.type)
            } else {
                let bytes = try content(field, path)
                form.append(name: field.name, data: Data(bytes), fileName: name, contentType: field.type)
            }
        }
    }

    private static func content(_ field: FormField, _ path: String) throws(OutputError) -> [UInt8] {
        if let bytes = field.bytes { return bytes }
        return try InputFile.all(path)
    }

    /// Checked here so that the error names the file; the library would find it when it opens the file.
    private static func isRegular(_ path: String) throws(OutputError) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else { throw .system(errno, path, .read) }
        return status.st_mode & S_IFMT == S_IFREG
    }
}
