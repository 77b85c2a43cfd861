// Where an interrupted download can go on. What is read back from outside is not believed: version,
// checksum, the place of the file, whose it is, its length and its last bytes are all looked at
// (security 78), which of its fields may go out, and what the server sends then (`ResumePlan`).

public import FoundationEssentials
import Synchronization
import URLLoadingIO
import URLLoadingWire

/// What is needed to go on with a download that was interrupted: in another task, session, process, or on
/// another machine.
///
/// One comes with the error of a download that failed and can be resumed (``LoadError/resumeToken``), from
/// ``LoadTask/cancelProducingResumeToken()``, and from ``LoadTask/resumeToken`` while the download goes on,
/// for programs that may be killed.
///
/// ```swift
/// do {
///     try await session.download(request, to: place)
/// } catch let error as LoadError {
///     try error.resumeToken?.data.write(to: memory)
/// }
/// // later, perhaps in another process
/// let token = try ResumeToken(Data(contentsOf: memory))
/// try await session.download(resuming: token, to: place)
/// ```
/// The bytes held are in a file that only its owner may read. It goes with the last copy of the token,
/// unless ``data`` was asked for: then it stays until the download is resumed or the token is discarded.
///
/// A token serves one download at a time, and none when that is complete. It names the URL, query included, the
/// validator, and of the request's fields those that say what is accepted, and nothing that could be a secret: give
/// such fields again when you resume.
///
/// Written while the download goes on, a token outlives the process: the next one goes on behind the last byte that was
/// written. It outlives the system, too: the file is brought to the disk every 64 MiB or 5 seconds, and after another
/// start of the system the download goes on from the last such point that the token knows. Ask for another token now and
/// then while the download goes on, to move that point.
public struct ResumeToken: Sendable, CustomStringConvertible {
    /// What is written down.
    struct Record: Codable, Sendable {
        var url: String
        /// Names and values, without credentials.
        var fields: [[String]]
        /// The value for If-Range (RFC 9110 §13.1.5).
        var validator: String
        /// The same as it is sent, where that is not UTF-8.
        var validatorBytes: Data?
        var offset: Int64
        var length: Int64?
        /// Where the bytes are, unless they come with the token.
        var path: String?
        var bytes: Data?
        /// SHA-256 of the last bytes before `offset`, at most 64 KiB.
        var tail: String
        /// The download went on when this was written: the file may be longer by now.
        var isEarly: Bool
        /// What the system was known by that has the file's bytes in its buffers. Empty if it did not say; `nil` in tokens
        /// of earlier versions, whose file is taken for what it was.
        var boot: String?
        /// How many bytes were on the disk for sure, and the tail before them.
        var synced: Int64?
        var syncedTail: String?
    }
    private final class Storage: Sendable {
        let record: Record
        let file: FileWriter?
        init(_ record: Record, _ file: FileWriter?) { (self.record, self.file) = (record, file) }
    }
    private let storage: Storage
    var record: Record { storage.record }

    init(_ record: Record, _ file: FileWriter?) { storage = Storage(record, file) }

    /// Reads what ``data`` or ``dataWithContent()`` gave. The file it may name is looked at when the download
    /// is resumed.
    /// - Throws: ``LoadError/Reason/invalidResumeToken`` if it is damaged, of a later version, or no token.
    public init(_ data: Data) throws(LoadError) {
        let lines = data.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3, lines[0].elementsEqual(Self.version.utf8) else {
            throw Self.refused("not a token of version 1")
        }
        guard lines[1].elementsEqual(Digest.hex(lines[2]).utf8),
            let record = try? JSONDecoder().decode(Record.self, from: Data(lines[2])),
            record.isSound
        else { throw Self.refused("damaged") }
        storage = Storage(record.withoutSecrets, nil)
    }

    /// The first line of what is written.
    private static let version = "URLLoading-Resume/1"

    static func refused(_ detail: String) -> LoadError {
        LoadError(.invalidResumeToken, phase: .preparing, party: .local, detail: detail)
    }

    /// What is loaded.
    public var url: URL { URL(string: record.url) ?? URL(filePath: "/") }
    /// How many bytes are held, at least.
    public var offset: Int64 { record.offset }
    /// How many there are in all, if that is known.
    public var expectedLength: Int64? { record.length }

    /// The token as bytes to store, for this machine: the file with what was loaded stays where it is.
    public var data: Data {
        storage.file?.keep()
        return Self.encoded(record)
    }

    /// The token with what was loaded, for another machine. The file is no longer needed then.
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
                let good: Int64
                (file, good) = try reopened(after: SystemBoot.identity)
                if good < record.offset { (record.offset, record.tail) = (good, record.mark?.tail ?? Digest.hex([])) }
            }
            guard !file.wasDelivered else { throw Refusal.used.failure }
            record.bytes = Data(try file.content(upTo: Int(record.offset)))
        } catch {
            throw Self.refusal(error)
        }
        (record.path, record.isEarly, record.boot, record.mark) = (nil, false, nil, nil)
        return Self.encoded(record)
    }

    /// Removes what was loaded: the download will not be resumed.
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
        return Data("\(version)\n\(Digest.hex(text))\n".utf8) + text
    }

    /// One line, without the query: `token https://example.org/a.iso 1024/4096`.
    public var description: String { "token \(url.withoutSecrets) \(offset)/\(expectedLength.map(String.init) ?? "?")" }

    // MARK: Its file

    /// Names of files with what was loaded so far begin so.
    static let prefix = ".urlloading-"

    /// Whether a file bears such a name: nothing else is opened at the word of a token.
    private static func isOurs(_ path: String) -> Bool {
        guard path.hasPrefix("/"), !path.contains("/../"), let name = path.split(separator: "/").last,
            name.hasPrefix(prefix)
        else { return false }
        let random = name.dropFirst(prefix.count).utf8
        return random.count == 24 && random.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) }
    }

    /// The file to go on with, and how much of it is good.
    /// - Parameters:
    ///   - folders: where such files may be.
    ///   - boot: what the running system is known by.
    func open(in folders: [String], boot: String = SystemBoot.identity) throws(LoadError) -> (FileWriter, offset: Int64)
    {
        do throws(IOFailure) {
            let (file, offset) = try opened(in: folders, boot)
            guard !file.wasDelivered else { throw Refusal.used.failure }
            guard file.claim() else { throw Refusal.inUse.failure }
            return (file, offset)
        } catch {
            throw Self.refusal(error)
        }
    }

    private func opened(in folders: [String], _ boot: String) throws(IOFailure) -> (FileWriter, Int64) {
        if let file = storage.file, file.size >= record.offset { return (file, record.offset) }
        guard let path = record.path else { return (try unpacked(in: folders[0]), record.offset) }
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
        guard folders.contains(folder) else { throw Refusal.foreign.failure }
        return try reopened(after: boot)
    }

    /// The file it names, if that is what it held: nothing else is opened at the word of a token.
    /// - Returns: the file, and how much of it is good. After another start of the system that is what was on the disk for
    ///   sure: behind it the file may have zeros.
    private func reopened(after boot: String) throws(IOFailure) -> (FileWriter, good: Int64) {
        guard let path = record.path, Self.isOurs(path) else { throw Refusal.foreign.failure }
        let (file, size) = try FileWriter.reopen(path)
        let isSameBoot = record.boot.map { $0 == boot && !boot.isEmpty } ?? true
        let known = isSameBoot ? DiskMark(offset: record.offset, tail: record.tail) : record.mark
        guard let known else { return (file, 0) }
        guard size >= known.offset, try file.tail(before: known.offset) == known.tail else {
            throw Refusal.changed.failure
        }
        if let mark = record.mark { file.go(onFrom: mark) }
        return (file, isSameBoot && record.isEarly ? min(size, record.length ?? size) : known.offset)
    }

    private static func refusal(_ error: IOFailure) -> LoadError {
        switch Refusal(error) {
        case .foreign?: return refused("its file is not where such files are")
        case .changed?: return refused("its file was changed")
        case .inUse?: return refused("somebody goes on with it already")
        case .used?: return refused("its download is complete")
        case nil:
            guard case .system(let number) = error.code else { return LoadError(file: error, .preparing) }
            return switch SystemError.fileKind(number) {
            case .notFound: refused("its file is gone")
            case .forbidden: refused("its file cannot be opened")
            case .other: LoadError(file: error, .preparing)
            }
        }
    }

    private func unpacked(in folder: String) throws(IOFailure) -> FileWriter {
        let bytes = record.bytes ?? Data()
        guard Int64(bytes.count) == record.offset else { throw Refusal.changed.failure }
        let file = try FileWriter.create(in: folder, prefix: Self.prefix)
        try file.write(Array(bytes), at: 0)
        guard try file.tail(before: record.offset) == record.tail else { throw Refusal.changed.failure }
        return file
    }

    /// Our own reasons among those of the system.
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
    fileprivate var isSound: Bool {
        guard offset >= 0, length.map({ $0 >= offset }) ?? true, !validator.isEmpty, let url = URL(string: url) else {
            return false
        }
        guard (synced == nil) == (syncedTail == nil), synced.map({ (0...offset).contains($0) }) ?? true else {
            return false
        }
        let scheme = url.scheme?.lowercased()
        return ["http", "https", "ftp", "ftps"].contains(scheme) && (path == nil) != (bytes == nil)
            && fields.allSatisfy { $0.count == 2 }
    }

    /// With those fields alone that say what is accepted. Other fields may be secrets; and a token
    /// that comes from elsewhere must not choose whom the request speaks for, or to.
    var withoutSecrets: Self {
        var record = self
        record.fields = fields.filter { field in field.first.map { Self.kept.contains(FieldName($0)) } ?? false }
        return record
    }
    private static let kept: [FieldName] = [.accept, .acceptEncoding, .acceptLanguage, .userAgent]

    /// What the rest is asked for with.
    var condition: ResumeValidator { ResumeValidator(validator, validatorBytes) }

    /// How much of the file was on the disk for sure.
    var mark: DiskMark? {
        get { synced.flatMap { offset in syncedTail.map { DiskMark(offset: offset, tail: $0) } } }
        set { (synced, syncedTail) = (newValue?.offset, newValue?.tail) }
    }
}
