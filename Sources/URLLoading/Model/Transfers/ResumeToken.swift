// SPDX-License-Identifier: Apache-2.0

// In this folder: what downloads and uploads carry from one attempt to the next, and the options of WebSockets

// The token that resumes an interrupted download. Serialised tokens are not trusted: version, checksum, location,
// owner, length and last bytes of the file are checked, only harmless fields are sent, and `ResumePlan`
// checks the response.

public import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

/// A token that resumes an interrupted download: in another task, session or process, or on another machine.
///
/// A token comes with the error of a failed download that can be resumed (``LoadError/resumeToken``), from
/// ``LoadTask/cancelProducingResumeToken()``, and, for programs that may be killed, from ``LoadTask/resumeToken`` while
/// the download runs.
///
/// ```swift
/// do {
///     try await session.download(request, to: place)
/// } catch {
///     try error.resumeToken?.data.write(to: memory)
/// }
/// // later, perhaps in another process
/// let token = try ResumeToken(Data(contentsOf: memory))
/// try await session.download(resuming: token, to: place)
/// ```
/// The partial content is in a file that only its owner may read. The file is removed with the last copy of the token,
/// unless ``data`` was read: then it stays until the download is resumed or the token is discarded.
///
/// A token serves one download at a time, and none after that has completed. It contains the URL with its query, the
/// validator, and the Accept fields of the request, but no fields that could be secret: supply those again when you
/// resume.
///
/// A token stored while the download runs survives the process: the next one continues after the last byte that was
/// written. It survives a reboot, too: the file is synchronised to disk every 64 MiB or 5 seconds, and after a reboot
/// the download continues from the last synchronised offset in the token. Store a new token now and then while the
/// download runs, to advance that offset.
public struct ResumeToken: Sendable, CustomStringConvertible {
    /// The serialised content of a token.
    struct Record: Codable, Sendable {
        var url: String
        /// Names and values of request fields, without credentials.
        var fields: [[String]]
        /// The value for If-Range (RFC 9110 §13.1.5).
        var validator: String
        /// The validator as it is sent, if that is not UTF-8.
        var validatorBytes: Data?
        var offset: Int64
        var length: Int64?
        /// The path of the partial file, unless the bytes are in the token.
        var path: String?
        var bytes: Data?
        /// SHA-256 of the last bytes before `offset`, at most 64 KiB.
        var tail: String
        /// True if the download was running when the token was made: the file may be longer by now.
        var isEarly: Bool
        /// The identity of the system start whose page cache holds the file's unsynchronised bytes. Empty if unknown;
        /// `nil` in tokens of earlier versions, whose files are trusted as they are.
        var boot: String?
        /// The number of bytes that were on disk, and the digest of the last of them.
        var synced: Int64?
        var syncedTail: String?
        /// The written ranges behind `offset`, of a file that is written in several at once; `nil` for others. The
        /// token is then of version 2.
        var ranges: [RangeMark]?
        /// Those that were on disk, behind `synced`.
        var syncedRanges: [RangeMark]?
    }
    private final class Storage: Sendable {
        let record: Record
        let file: FileWriter?
        init(_ record: Record, _ file: FileWriter?) { (self.record, self.file) = (record, file) }
    }
    private let storage: Storage
    var record: Record { storage.record }

    init(_ record: Record, _ file: FileWriter?) { storage = Storage(record, file) }

    /// Parses the result of ``data`` or ``dataWithContent()``. The partial file is checked only when the download is
    /// resumed.
    /// - Throws: ``LoadError/Reason/invalidResumeToken`` if the data is damaged, of a later version, or not a token.
    public init(_ data: Data) throws(LoadError) {
        let lines = data.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3,
            let version = [1, 2].first(where: { lines[0].elementsEqual(Self.version($0).utf8) })
        else { throw Self.refused("not a token of version 1 or 2") }
        guard lines[1].elementsEqual(Digest.hex(lines[2]).utf8),
            let record = try? JSONDecoder().decode(Record.self, from: Data(lines[2])),
            record.isValid, record.version == version
        else { throw Self.refused("damaged") }
        storage = Storage(record.withoutSecrets, nil)
    }

    /// The first line of a serialised token. Programs that know version 1 only refuse version 2 in words: to them the
    /// file of a token with ranges would be whole up to its size.
    private static func version(_ number: Int) -> String { "URLLoading-Resume/\(number)" }

    static func refused(_ detail: String, _ kind: LoadError.Kind? = nil) -> LoadError {
        LoadError(.invalidResumeToken, phase: .preparing, party: .local, detail: detail, kind: kind)
    }

    /// The URL of the download.
    public var url: URL { URL(string: record.url) ?? URL(filePath: "/") }
    /// The minimum number of bytes already loaded. After a download in several ranges they are not all at the beginning
    /// of the content.
    public var offset: Int64 { (record.ranges ?? []).reduce(record.offset) { $0 + $1.end - $1.begin } }
    /// The length of the whole content in bytes; `nil` if unknown.
    public var expectedLength: Int64? { record.length }

    /// The token as bytes to store on this machine. The partial file stays where it is.
    public var data: Data {
        storage.file?.keep()
        return Self.encoded(record)
    }

    /// The token and the partial content as bytes, for another machine. The partial file is then no longer needed. Of a
    /// download in several ranges the token carries the first.
    /// - Throws: ``LoadError`` if the file cannot be read; ``LoadError/Reason/bodyTooLarge`` beyond 64 MiB.
    public func dataWithContent() throws(LoadError) -> Data {
        guard record.bytes == nil else { return Self.encoded(record) }
        guard record.offset <= 64 << 20 else { throw .tooLarge(64 << 20) }
        var record = record
        let file: FileWriter
        do throws(IOFailure) {
            if let held = storage.file {
                file = held
            } else {
                let held: ByteRanges
                (file, held) = try reopened(after: SystemBoot.identity)
                let good = held.prefix
                if good < record.offset { (record.offset, record.tail) = (good, record.mark?.tail ?? Digest.hex([])) }
            }
            guard !file.wasDelivered else { throw Refusal.used.failure }
            record.bytes = Data(try file.content(upTo: Int(record.offset)))
        } catch {
            throw Self.refusal(error)
        }
        (record.path, record.isEarly, record.boot, record.mark) = (nil, false, nil, nil)
        (record.ranges, record.syncedRanges) = (nil, nil)
        return Self.encoded(record)
    }

    /// Copies the valid beginning of the partial file into another one beside it. Blocks.
    /// - Parameter boot: the identity of the running system start.
    func copied(after boot: String) throws(LoadError) -> ResumeToken {
        do throws(IOFailure) {
            let (file, held) = try reopened(after: boot)
            guard let path = record.path, let slash = path.lastIndex(of: "/") else { throw Refusal.foreign.failure }
            let count = held.prefix
            let copy = try file.copy(upTo: count, to: String(path[..<slash]), prefix: Self.prefix)
            try copy.synchronize()
            var record = record
            let mark = DiskMark(offset: count, tail: try copy.tail(before: count))
            (record.path, record.offset, record.tail, record.mark) = (copy.path, mark.offset, mark.tail, mark)
            (record.isEarly, record.boot, record.ranges, record.syncedRanges) = (false, boot, nil, nil)
            copy.unclaim()
            return ResumeToken(record, copy)
        } catch { throw Self.refusal(error) }
    }

    /// Removes the partial file: the download can no longer be resumed.
    public func discard() {
        if let file = storage.file {
            file.unkeep()
            file.discard()
        } else if let (file, _) = try? reopened(after: SystemBoot.identity) {
            file.unkeep()
            file.discard()
        }
    }

    private static func encoded(_ record: Record) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = (try? encoder.encode(record)) ?? Data()
        return Data("\(version(record.version))\n\(Digest.hex(text))\n".utf8) + text
    }

    /// The token on one line, without the query: `token https://example.org/a.iso 1024/4096`.
    public var description: String { "token \(url.withoutSecrets) \(offset)/\(expectedLength.map(String.init) ?? "?")" }

    // MARK: The partial file

    /// The prefix of the names of partial files. A file without a token that was ever stored has a mark, by which the
    /// next download into its folder recognises what a killed process has left (`Leftovers`).
    static let prefix = ".urlloading-"

    /// Returns whether a path has the form of a partial file. A token must not make the program open any other file.
    private static func isPartialFilePath(_ path: String) -> Bool {
        guard path.hasPrefix("/"), !path.contains("/../"), let name = path.split(separator: "/").last,
            name.hasPrefix(prefix)
        else { return false }
        let random = name.dropFirst(prefix.count).utf8
        return random.count == 24 && random.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) }
    }

    /// Opens the partial file, and returns which of its bytes are valid.
    /// - Parameters:
    ///   - folders: the folders that may contain partial files.
    ///   - boot: the identity of the running system start.
    func open(in folders: [String], boot: String = SystemBoot.identity) throws(LoadError) -> (
        FileWriter, held: ByteRanges
    ) {
        do throws(IOFailure) {
            let (file, held) = try opened(in: folders, boot)
            guard !file.wasDelivered else { throw Refusal.used.failure }
            guard file.claim() else { throw Refusal.inUse.failure }
            return (file, held)
        } catch {
            throw Self.refusal(error)
        }
    }

    private func opened(in folders: [String], _ boot: String) throws(IOFailure) -> (FileWriter, ByteRanges) {
        if let file = storage.file, file.size >= record.offset {
            // A download that began anew may have cut the file, and written it in part.
            if let ranges = record.ranges {
                try verify(file, file.size, DiskMark(offset: record.offset, tail: record.tail), ranges)
            }
            return (file, record.held)
        }
        guard let path = record.path else { return (try unpacked(in: folders[0]), record.held) }
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
        guard folders.contains(folder) else { throw Refusal.foreign.failure }
        return try reopened(after: boot)
    }

    /// Opens the file that the token names, if its content is as recorded. A token must not make the program open any
    /// other file.
    /// - Returns: the file, and which of its bytes are valid. After a reboot these are the synchronised ones, because
    ///   the file may have zeros elsewhere.
    private func reopened(after boot: String) throws(IOFailure) -> (FileWriter, good: ByteRanges) {
        guard let path = record.path, Self.isPartialFilePath(path) else { throw Refusal.foreign.failure }
        let (file, size) = try FileWriter.reopen(path)
        let isSameBoot = record.boot.map { $0 == boot && !boot.isEmpty } ?? true
        let known = isSameBoot ? DiskMark(offset: record.offset, tail: record.tail) : record.mark
        let ranges = (isSameBoot ? record.ranges : record.syncedRanges) ?? []
        guard known != nil || !ranges.isEmpty else { return (file, ByteRanges()) }
        try verify(file, size, known, ranges)
        if let mark = record.mark { file.resume(from: mark) }
        var good = ByteRanges(upTo: known?.offset ?? 0)
        for mark in ranges { good.insert(mark.begin..<mark.end) }
        if isSameBoot, record.isEarly { grow(&good, in: file, size) }
        return (file, good)
    }

    /// Compares the last bytes of each range.
    private func verify(
        _ file: FileWriter, _ size: Int64, _ prefix: DiskMark?, _ ranges: [RangeMark]
    ) throws(IOFailure) {
        guard size >= max(prefix?.offset ?? 0, ranges.last?.end ?? 0) else { throw Refusal.changed.failure }
        if let prefix, try file.tail(before: prefix.offset) != prefix.tail { throw Refusal.changed.failure }
        for mark in ranges where try file.mark(mark.begin..<mark.end) != mark { throw Refusal.changed.failure }
    }

    /// Adds the bytes that the download has written after it made the token. A file that is written in order has them
    /// up to its size. One that is written in ranges is larger than its content, and its journal states them. Without a
    /// known length the journal alone tells the one from the other: a later response may have stated the length.
    private func grow(_ good: inout ByteRanges, in file: FileWriter, _ size: Int64) {
        if let length = record.length, size <= length {
            if record.ranges == nil || size == length { good.insert(0..<size) }
        } else if let ranges = FileRanges.journal(of: file, length: record.length) {
            for range in ranges { good.insert(range) }
        } else if record.length == nil {
            good.insert(0..<size)
        }
    }

    private static func refusal(_ error: IOFailure) -> LoadError {
        switch Refusal(error) {
        case .foreign?: return refused("the partial file is not in a folder of partial downloads")
        case .changed?: return refused("the partial file was changed")
        case .inUse?: return refused("another download uses the partial file", .partialFileInUse)
        case .used?: return refused("the download is complete")
        case nil:
            guard case .system(let number) = error.code else { return LoadError(file: error, .preparing) }
            return switch SystemError.fileKind(number) {
            case .notFound: refused("the partial file is gone")
            case .forbidden: refused("the partial file cannot be opened: \(SystemError.words(number))")
            case .other: LoadError(file: error, .preparing)
            }
        }
    }

    private func unpacked(in folder: String) throws(IOFailure) -> FileWriter {
        let bytes = record.bytes ?? Data()
        guard Int64(bytes.count) == record.offset else { throw Refusal.changed.failure }
        let file = try FileWriter.createPartial(in: folder, prefix: Self.prefix)
        file.unclaim()
        try file.write(Array(bytes), at: 0)
        guard try file.tail(before: record.offset) == record.tail else { throw Refusal.changed.failure }
        return file
    }

    /// The library's own refusals, encoded as I/O failures.
    private enum Refusal: String {
        case foreign, changed, inUse, used
        var failure: IOFailure { IOFailure(.invalidAddress(rawValue), .open) }
        init?(_ failure: IOFailure) {
            guard case .invalidAddress(let word) = failure.code, let refusal = Refusal(rawValue: word) else {
                return nil
            }
            self = refusal
        }
    }
}

extension ResumeToken.Record {
    fileprivate var isValid: Bool {
        guard offset >= 0, length.map({ $0 >= offset }) ?? true, !validator.isEmpty, let url = URL(string: url) else {
            return false
        }
        guard (synced == nil) == (syncedTail == nil), synced.map({ (0...offset).contains($0) }) ?? true,
            areValid(ranges, behind: offset), areValid(syncedRanges, behind: synced ?? 0)
        else { return false }
        let schemes = ranges == nil ? ["http", "https", "ftp", "ftps"] : ["http", "https"]
        return schemes.contains(url.scheme?.lowercased() ?? "") && (path == nil) != (bytes == nil)
            && fields.allSatisfy { $0.count == 2 }
    }

    /// Ranges are in order, and within content of known length in a file.
    private func areValid(_ marks: [RangeMark]?, behind start: Int64) -> Bool {
        guard let marks else { return true }
        guard let length, length <= FileRanges.maximumLength, path != nil, ranges != nil,
            marks.count <= Self.maximumRanges
        else { return false }
        var end = start
        return marks.allSatisfy { mark in
            defer { end = mark.end }
            return mark.begin >= end && mark.begin < mark.end && mark.end <= length
        }
    }
    private static let maximumRanges = 1000

    var version: Int { ranges == nil ? 1 : 2 }

    /// The ranges that were on disk.
    var marks: [RangeMark] {
        let first = mark.map { [RangeMark(begin: 0, end: $0.offset, tail: $0.tail)] } ?? []
        return first + (syncedRanges ?? [])
    }
    var countOnDisk: Int64 { marks.reduce(0) { $0 + $1.end - $1.begin } }

    /// The bytes that are written.
    fileprivate var held: ByteRanges {
        var held = ByteRanges(upTo: offset)
        for mark in ranges ?? [] { held.insert(mark.begin..<mark.end) }
        return held
    }

    /// The record without the fields that may be secrets. A token from elsewhere must not determine with which
    /// credentials the request is sent.
    var withoutSecrets: Self {
        var record = self
        record.fields = fields.filter { field in field.first.map { Self.kept.contains(FieldName($0)) } ?? false }
        return record
    }
    private static let kept: [FieldName] = [.accept, .acceptEncoding, .acceptLanguage, .userAgent]

    /// The validator for the request of the rest.
    var condition: ResumeValidator { ResumeValidator(validator, validatorBytes) }

    /// The part of the file that was on disk.
    var mark: DiskMark? {
        get { synced.flatMap { offset in syncedTail.map { DiskMark(offset: offset, tail: $0) } } }
        set { (synced, syncedTail) = (newValue?.offset, newValue?.tail) }
    }
}

extension ResumeToken {
    /// Returns whether the token is for this URL, userinfo aside.
    public func isFor(_ url: URL) -> Bool { self.url.withoutUserinfo == url.withoutUserinfo }

    /// The request of the download, as far as the token contains it.
    var request: Request {
        var request = Request(url: url)
        for field in record.fields { request.headers.append(FieldName(field[0]), field[1]) }
        return request
    }
}
