// A download that another run of the command can go on with (`-C`). What is needed for that lies beside the file, in
// `.FILE.urlload`, as soon as a part of the body is there: also a run that was killed is continued.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingIO

struct Continuation: Sendable {
    let path: String
    /// The file as it was named.
    let shown: String
    private let notes: String

    /// `nil` for what is no regular file: a pipe, a device.
    init?(_ path: String) {
        var status = stat()
        var path = path
        shown = path
        // Behind a link it is the file itself that goes on.
        if let resolved = realpath(path, nil) {
            path = String(cString: resolved)
            free(resolved)
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        }
        self.path = path
        let name = path.split(separator: "/").last.map(String.init) ?? path
        notes = path.dropLast(name.count) + Self.notesName(name)
    }

    /// `.FILE.urlload`. A name that would be too long with that, and with what is added while they are written, ends in a
    /// hash of all of it instead.
    static func notesName(_ name: String) -> String {
        let whole = ".\(name).urlload"
        guard whole.utf8.count > 255 - ".new".utf8.count else { return whole }
        var beginning = name
        while beginning.utf8.count > 150 { beginning.removeLast() }
        return ".\(beginning)-\(Digest.hex(Array(name.utf8))).urlload"
    }

    var place: URL { URL(filePath: path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path) }

    /// What another run has left; `nil` if there is nothing, or nothing that can be used.
    func token(for url: URL) -> ResumeToken? {
        guard let data = try? Data(contentsOf: URL(filePath: notes)), let token = try? ResumeToken(data) else {
            return nil
        }
        guard token.isFor(url) else {
            // Nobody else knows of its file.
            token.discard()
            forget()
            return nil
        }
        return token
    }

    /// For its owner alone: a URL may be a secret. Returns false if that is not possible.
    func store(_ token: ResumeToken) -> Bool {
        let temporary = notes + ".new"
        unlink(temporary)
        let number = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard number >= 0 else { return false }
        let data = token.data
        let isWritten = data.withUnsafeBytes { Glibc.write(number, $0.baseAddress, $0.count) } == data.count
        guard close(number) == 0, isWritten, rename(temporary, notes) == 0 else {
            unlink(temporary)
            return false
        }
        return true
    }

    func forget() { unlink(notes) }
    var hasNotes: Bool { access(notes, F_OK) == 0 }

    /// Where bytes are left that no token is for.
    var leftover: URL { URL(filePath: PartialFile.partName(place.path(percentEncoded: false))) }

    /// With what a load is made.
    struct Run: Sendable {
        let session: Session
        let decisions: Decisions
        /// Whether it goes on with what another run has left; otherwise it begins anew, and what was left goes when
        /// there is more.
        let resumes: Bool
        let leftover: URL
    }

    /// Loads the rest, or all of it.
    /// - Parameter hear: gets each event; returns how long to pause.
    func load(
        _ request: Request, _ run: Run, _ hear: (LoadEvent) -> Duration?
    ) async throws(LoadError) -> DownloadedFile {
        let token = token(for: request.url)
        guard run.resumes, let token else { return try await load(request, nil, run, old: token, hear) }
        do throws(LoadError) {
            return try await load(request, token, run, old: nil, hear)
        } catch  where error.reason == .invalidResumeToken {
            return try await load(request, nil, run, old: nil, hear)
        }
    }

    private func load(
        _ request: Request, _ token: ResumeToken?, _ run: Run, old: ResumeToken?, _ hear: (LoadEvent) -> Duration?
    ) async throws(LoadError) -> DownloadedFile {
        var options = DownloadOptions(destination: place)
        options.leftover = run.leftover
        let task =
            token.map {
                run.session.downloadTask(resuming: $0, request: request, options: options, decisions: run.decisions)
            } ?? run.session.downloadTask(request, options: options, decisions: run.decisions)
        let events = task.events
        task.resume()
        // Once when there is something to go on with, and whenever more of it would survive a loss of power.
        var stored: Int64?
        var canStore = true
        for await event in events {
            if let pause = hear(event) {
                task.suspend()
                try? await Task.sleep(for: pause)
                task.resume()
            }
            guard canStore, case .received(let bytes) = event, bytes.expected.map({ bytes.total < $0 }) ?? true else {
                continue
            }
            let onDisk = task.offsetOnDisk
            guard onDisk > stored ?? -1, let early = task.resumeToken else { continue }
            if stored == nil { old?.discard() }
            stored = onDisk
            canStore = store(early)
        }
        do throws(LoadError) {
            let file = try await task.value
            if stored == nil { old?.discard() }
            forget()
            unlink(run.leftover.path(percentEncoded: false))
            return file
        } catch {
            // What cannot be found again goes.
            if let token = error.resumeToken {
                if stored == nil, old != nil { old?.discard() }
                if !canStore || !store(token) { token.discard() }
            }
            throw error
        }
    }
}

extension Report.Kept {
    /// What a load that failed has left of its file; `nil` for nothing.
    init?(_ continuation: Continuation, _ error: LoadError, _ attempt: Transfer.Attempt) {
        if let token = error.resumeToken {
            guard token.offset > 0, continuation.hasNotes else { return nil }
            self.init(file: continuation.shown, bytes: token.offset, total: token.expectedLength, isChecked: true)
            return
        }
        let place = continuation.leftover.path(percentEncoded: false)
        guard attempt.bytes > 0, FileCheck.exists(place) else { return nil }
        self.init(
            file: continuation.shown, bytes: attempt.bytes, total: attempt.response?.expectedLength, isChecked: false)
    }
}
