// SPDX-License-Identifier: Apache-2.0

// A download that a later run of the command can resume (`-C`). Its resume token is stored beside the file in
// `.FILE.urlload` as soon as a part of the body is on the disk, so that a killed run can be resumed, too.

import FoundationEssentials
import Glibc
import URLLoading
import URLLoadingIO
import URLLoadingWire

struct Continuation: Sendable {
    let path: String
    /// The path of the file as given.
    let shown: String
    private let notes: String

    /// Returns `nil` for a pipe or a device.
    init?(_ path: String) {
        guard FileDescriptor.standard(path) == nil else { return nil }
        var status = stat()
        var path = path
        shown = path
        // A symbolic link is followed: its target is resumed.
        if let resolved = realpath(path, nil) {
            path = String(cString: resolved)
            free(resolved)
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        }
        self.path = path
        let name = path.split(separator: "/").last.map(String.init) ?? path
        notes = path.dropLast(name.count) + Self.notesName(name)
    }

    /// The name of the file with the token: `.FILE.urlload`. A name that would be too long, including the suffix while
    /// it is being written, is cut and ends in a hash of the whole name.
    static func notesName(_ name: String) -> String {
        let whole = ".\(name).urlload"
        guard whole.utf8.count > 255 - ".new".utf8.count else { return whole }
        return ".\(name.prefix(utf8Count: 150))-\(Digest.hex(Array(name.utf8))).urlload"
    }

    var place: URL { URL(filePath: path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path) }

    /// Returns the token of an earlier run; `nil` if there is none, or none for this URL.
    func token(for url: URL) -> ResumeToken? {
        guard let data = try? Data(contentsOf: URL(filePath: notes)), let token = try? ResumeToken(data) else {
            return nil
        }
        guard token.isFor(url) else {
            // Only this token names its partial file, which is removed with it.
            token.discard()
            forget()
            return nil
        }
        return token
    }

    /// Whether an earlier run has left a token for this URL.
    func hasToken(for url: URL) -> Bool {
        guard let data = try? Data(contentsOf: URL(filePath: notes)) else { return false }
        return (try? ResumeToken(data))?.isFor(url) == true
    }

    /// Stores the token, readable by its owner alone, because the URL may contain a secret. Returns false on failure.
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

    /// The partial file of a load without a token.
    var leftover: URL { URL(filePath: PartialFile.partName(place.path(percentEncoded: false))) }

    /// The surroundings of a load.
    struct Run: Sendable {
        let session: Session
        let decisions: Decisions
        /// True to resume from an earlier run's token. Otherwise the load begins anew, and the old partial file is
        /// removed once there is more to keep.
        let resumes: Bool
        let sendsAcceptEncoding: Bool
        /// The size in bytes beyond which the load fails.
        let maximumSize: Int64?
        /// How many parts of the file are loaded at once.
        let parallelRanges: ParallelRanges?
    }

    /// What to do after an event.
    enum Step: Sendable, Hashable {
        case proceed
        case pause(Duration)
    }

    /// The options of the download.
    var options: DownloadOptions {
        var options = DownloadOptions(destination: place)
        options.leftover = leftover
        return options
    }

    /// A complete file, and the trailer fields of the response that it is from.
    typealias Saved = (file: DownloadedFile, trailers: Headers)

    /// Loads the rest, or the whole file.
    /// - Parameter onEvent: receives each event.
    func load(
        _ request: Request, _ run: Run, _ onEvent: (LoadEvent) -> Step
    ) async throws(LoadError) -> Saved {
        let token = token(for: request.url)
        guard run.resumes, let token else { return try await load(request, nil, run, old: token, onEvent) }
        do throws(LoadError) {
            return try await load(request, token, run, old: nil, onEvent)
        } catch  where error.reason == .invalidResumeToken {
            return try await load(request, nil, run, old: nil, onEvent)
        }
    }

    private func load(
        _ request: Request, _ token: ResumeToken?, _ run: Run, old: ResumeToken?, _ onEvent: (LoadEvent) -> Step
    ) async throws(LoadError) -> Saved {
        var options = options
        (options.sendsAcceptEncoding, options.maximumSize) = (run.sendsAcceptEncoding, run.maximumSize)
        options.parallelRanges = run.parallelRanges
        let task =
            token.map {
                run.session.downloadTask(resuming: $0, request: request, options: options, decisions: run.decisions)
            } ?? run.session.downloadTask(request, options: options, decisions: run.decisions)
        return try await follow(task, old: old, onEvent)
    }

    /// Runs a download, and stores its token while it runs.
    /// - Parameter old: the token of an earlier run, which is discarded once there is more to keep.
    func follow(
        _ task: LoadTask<DownloadedFile>, old: ResumeToken?, _ onEvent: (LoadEvent) -> Step
    ) async throws(LoadError) -> Saved {
        let events = task.events
        task.resume()
        // The token is stored when there is something to resume, and again whenever more bytes would survive a loss of
        // power.
        var stored: Int64?
        var canStore = true
        for await event in events {
            switch onEvent(event) {
            case .proceed: break
            case .pause(let pause):
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
            unlink(leftover.path(percentEncoded: false))
            return (file, task.trailers)
        } catch {
            // A partial file whose token is not stored could not be found again: it is removed.
            if let token = error.resumeToken {
                if stored == nil, old != nil { old?.discard() }
                if !canStore || !store(token) { token.discard() }
            }
            throw error
        }
    }
}

extension Report.Kept {
    /// The partial file of a failed load; `nil` for none.
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
