// The beginning of a file that curl, wget or another run has left, without a word of what it is the beginning of.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingWire

struct PartialFile: Sendable {
    /// The file that is wanted.
    let path: String
    /// Where its beginning is: that file, or `FILE.part`.
    private let place: String
    /// How many bytes there are; the rest is asked for from here.
    let offset: Int64
    /// The time of the file, if that can be the server's Last-Modified: a time of full seconds was given to it (wget,
    /// `curl -R`), for a clock gives others. Then the server is asked whether the rest belongs to it (RFC 9110 §13.1.5).
    let date: HTTPDate?

    /// - Parameter offset: where to go on; `nil` for behind what is there.
    /// - Returns: `nil` if nothing is there.
    init?(_ path: String, offset: Int64? = nil) {
        self.path = path
        var status = stat()
        let part = Self.partName(path)
        if stat(part, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 {
            place = part
        } else if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 {
            place = path
        } else if let offset {
            (place, self.offset, date) = (path, offset, nil)
            return
        } else {
            return nil
        }
        self.offset = offset ?? Int64(status.st_size)
        let seconds = Int64(status.st_mtim.tv_sec)
        let isGiven = status.st_mtim.tv_nsec == 0 && seconds > 0 && time(nil) - Int(seconds) >= 60
        date = isGiven && offset == nil ? HTTPDate(secondsSince1970: seconds) : nil
    }

    static func partName(_ path: String) -> String { path + ".part" }

    enum Answer {
        /// What follows the bytes that are there.
        case rest
        /// All of it: it has changed, or the server knows no ranges.
        case whole
        /// Nothing follows.
        case complete
        case refused(Report.Failure)
    }

    /// What the server's answer means for the file.
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
                            detail: "another part was sent: \(range)")
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
        default: return .whole
        }
    }

    /// The file, to write behind what is there.
    func open() throws(OutputError) -> FileDescriptor {
        let number = Glibc.open(place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        guard number >= 0 else { throw .system(errno, path) }
        return FileDescriptor(number: number, name: path)
    }

    /// The file is complete, and gets its name.
    func commit() throws(OutputError) -> String {
        guard place != path else { return path }
        guard rename(place, path) == 0 else { throw .system(errno, path) }
        return path
    }

    /// The wanted file was loaded otherwise.
    func remove() { if place != path { unlink(place) } }
}
