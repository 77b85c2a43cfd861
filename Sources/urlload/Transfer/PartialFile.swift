// SPDX-License-Identifier: Apache-2.0

// The beginning of a file, left by curl, wget or an earlier run without a resume token.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingWire

struct PartialFile: Sendable {
    /// The path of the complete file.
    let path: String
    /// The path of the partial file: that of the complete file, or `FILE.part`.
    private let place: String
    /// The number of bytes present, at which the requested range begins.
    let offset: Int64
    /// The file's modification time, if it can be the server's Last-Modified: wget and `curl -R` set a time of whole
    /// seconds, which a clock hardly does. It is sent as If-Range, so that the server validates the part (RFC 9110
    /// §13.1.5).
    let date: HTTPDate?
    /// True if the bytes before the offset are all those of the file itself, and not those of `FILE.part`.
    let isFile: Bool

    /// - Parameter offset: the offset to resume at; `nil` for the end of the file.
    /// - Returns: `nil` without a partial file.
    init?(_ path: String, offset: Int64? = nil) {
        guard FileDescriptor.standard(path) == nil else { return nil }
        self.path = path
        var status = stat()
        let part = Self.partName(path)
        if stat(part, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 {
            place = part
        } else if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 {
            place = path
        } else if let offset {
            (place, self.offset, date, isFile) = (path, offset, nil, false)
            return
        } else {
            return nil
        }
        self.offset = offset ?? Int64(status.st_size)
        let seconds = Int64(status.st_mtim.tv_sec)
        let isGiven = status.st_mtim.tv_nsec == 0 && seconds > 0 && time(nil) - Int(seconds) >= 60
        isFile = place == path && offset == nil
        date = isGiven && offset == nil ? HTTPDate(secondsSince1970: seconds) : nil
    }

    /// The size of the whole file with a rest of this length, which a server may state as it likes.
    func total(with rest: Int64) -> Int64 {
        let (sum, isBeyond) = offset.addingReportingOverflow(rest)
        return isBeyond ? .max : sum
    }

    static func partName(_ path: String) -> String { path + ".part" }

    enum Answer {
        /// The bytes after the offset.
        case rest
        /// The whole content: it has changed, or the server does not support ranges.
        case whole
        /// Nothing: the partial file is complete.
        case complete
        case refused(Report.Failure)
    }

    /// Classifies the response to the range request.
    func answer(_ head: HTTPHead?) -> Answer {
        guard let head else { return .whole }
        let range = head.headers[.contentRange] ?? ""
        switch head.status {
        case .partialContent:
            guard range.hasPrefix("bytes \(offset)-"), !head.headers.contains(.contentEncoding) else {
                return .refused(
                    Report.Failure(
                        LoadError(
                            .resumeMismatch, phase: .receiving, party: .remote,
                            detail: "the server sent another range: \(range)")
                    ))
            }
            return .rest
        case .rangeNotSatisfiable where range.hasSuffix("/\(offset)"): return .complete
        case .rangeNotSatisfiable:
            return .refused(
                Report.Failure(
                    LoadError(
                        .rangeNotSatisfiable, phase: .receiving, party: .remote,
                        detail: "the server has fewer bytes than \(path)")))
        case _ where head.status.code >= 400: return .refused(Report.Failure(head.status))
        // A server without ranges sends the file that is here: of the same length and, if the file has the server's
        // time, of the same time.
        case .ok where isWhole(head.headers): return .complete
        default: return .whole
        }
    }

    private func isWhole(_ headers: Headers) -> Bool {
        isFile && headers[.contentLength] == "\(offset)" && !headers.contains(.contentEncoding)
            && (date == nil || headers[.lastModified].flatMap { HTTPDate($0) } == date)
    }

    /// Opens the partial file for appending.
    func open() throws(OutputError) -> FileDescriptor {
        let number = Glibc.open(place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .system(errno, path) }
        return FileDescriptor(number: number, name: path)
    }

    /// Renames the complete file to its final name.
    func commit() throws(OutputError) -> String {
        guard place != path else { return path }
        guard rename(place, path) == 0 else { throw .system(errno, path) }
        return path
    }

    /// Removes the partial file after the whole content was loaded.
    func remove() { if place != path { unlink(place) } }
}
