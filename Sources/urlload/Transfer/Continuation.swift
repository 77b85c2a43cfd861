// `-C`: a download that another run of the command goes on with. What is needed for that lies beside the
// file, in `.FILE.urlload`, from the moment the response is known: also a run that was killed is continued.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingIO

struct Continuation: Sendable {
    let path: String
    private let notes: String

    /// `nil` for what is no regular file: a pipe, a device.
    init?(_ path: String) {
        var status = stat()
        var path = path
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

    /// Loads the rest, or all of it.
    func run(
        _ request: Request, _ session: Session, _ decisions: Decisions, _ hear: (LoadEvent) -> Void
    ) async throws(LoadError) -> DownloadedFile {
        let token = token(for: request.url)
        do throws(LoadError) {
            return try await run(request, token, session, decisions, hear)
        } catch  where error.reason == .invalidResumeToken && token != nil {
            return try await run(request, nil, session, decisions, hear)
        }
    }

    private func run(
        _ request: Request, _ token: ResumeToken?, _ session: Session, _ decisions: Decisions,
        _ hear: (LoadEvent) -> Void
    ) async throws(LoadError) -> DownloadedFile {
        let options = DownloadOptions(destination: place)
        let task =
            token.map { session.downloadTask(resuming: $0, request: request, options: options, decisions: decisions) }
            ?? session.downloadTask(request, options: options, decisions: decisions)
        let events = task.events
        task.resume()
        // Once when there is something to go on with, and whenever more of it would survive a loss of power.
        var stored: Int64?
        var canStore = true
        for await event in events {
            hear(event)
            guard canStore, case .received = event else { continue }
            let onDisk = task.offsetOnDisk
            guard onDisk > stored ?? -1, let early = task.resumeToken else { continue }
            stored = onDisk
            canStore = store(early)
        }
        do throws(LoadError) {
            let file = try await task.value
            forget()
            return file
        } catch {
            // What nobody will find again goes.
            if let token = error.resumeToken, !canStore || !store(token) { token.discard() }
            throw error
        }
    }
}
