// SPDX-License-Identifier: Apache-2.0

public import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

/// One load into a file of the program's choice: the API that preceded sessions.
///
/// ```swift
/// let download = NSURLDownload(request: URLRequest(url: url), delegate: self)
/// // in the delegate:
/// func download(_ download: NSURLDownload, decideDestinationWithSuggestedFilename filename: String) {
///     download.setDestination("/srv/files/" + filename, allowOverwrite: false)
/// }
/// ```
/// The download begins at once. The delegate is called on the run loop of the thread that created the download, in the
/// default mode, and is retained until its last call. During the load the file has another name, in the folder for
/// temporary files.
open class NSURLDownload: NSObject, @unchecked Sendable {
    // Unchecked: no open class can be checked; its properties are immutable or under a lock.
    private struct State: Sendable {
        // The program's delegate, called on its run loop only.
        nonisolated(unsafe) var delegate: (any NSURLDownloadDelegate)?
        var isOver = false
        var task: URLSessionTask?
        var destination: (path: String, overwrites: Bool)?
        var resumeData: Data?
        var deletesUponFailure = true
    }
    private let state: Lock<State>
    private let runLoops = RunLoopQueue()
    private let original: URLRequest
    let resumed: Data?

    /// Begins a download.
    public init(request: URLRequest, delegate: (any NSURLDownloadDelegate)?) {
        (original, resumed) = (request, nil)
        state = Lock(State(delegate: delegate))
        super.init()
        begin()
    }

    /// Resumes a download that was cancelled or has failed.
    /// - Parameters:
    ///   - resumeData: the value of ``resumeData`` of the earlier download.
    ///   - path: the path of the complete file.
    public init(resumeData: Data, delegate: (any NSURLDownloadDelegate)?, path: String) {
        (original, resumed) = (URLRequest(), resumeData)
        state = Lock(State(delegate: delegate, destination: (path, true)))
        super.init()
        begin()
    }

    /// Returns whether a download can be resumed if its file of this type was to be decompressed. True for gzip,
    /// because files are decompressed only when they are complete.
    open class func canResumeDownloadDecoded(withEncodingMIMEType MIMEType: String) -> Bool {
        CompressedFile.isKnown(MIMEType)
    }

    /// The request; after redirects, the last one.
    open var request: URLRequest { state.withLock { $0.task }?.currentRequest ?? original }

    /// Ends the download. No further calls are made to the delegate. ``resumeData`` becomes available a little later,
    /// if ``deletesFileUponFailure`` is false.
    open func cancel() {
        let (task, delegate) = state.withLock { state in
            state.isOver = true
            return (state.task, state.delegate.take())
        }
        withExtendedLifetime(delegate) {}
        defer { runLoops.leaveRunLoops() }
        guard !deletesFileUponFailure, let task = task as? URLSessionDownloadTask else { return task?.cancel() ?? () }
        task.cancel { [self] in keep($0) }
    }

    /// Sets the path of the complete file. To be called in `decideDestinationWithSuggestedFilename` or before; later
    /// calls have no effect.
    /// - Parameter allowOverwrite: whether an existing file is replaced; otherwise a number is added to the name. A
    ///   folder is not replaced: the download fails with `URLError.cannotMoveFile`.
    open func setDestination(_ path: String, allowOverwrite: Bool) {
        state.withLock { if $0.destination == nil { $0.destination = (path, allowOverwrite) } }
    }

    /// The data with which the download can be resumed; `nil` while it is running, if ``deletesFileUponFailure`` was
    /// true, and if its server does not support it.
    open var resumeData: Data? { state.withLock { $0.resumeData } }

    /// Whether the partial file is deleted if the download fails or is cancelled; true by default. If false, the file
    /// is kept for ``resumeData``.
    open var deletesFileUponFailure: Bool {
        get { state.withLock { $0.deletesUponFailure } }
        set { state.withLock { $0.deletesUponFailure = newValue } }
    }

    // MARK: Inside

    private func begin() {
        runLoops.schedule(in: .current, .default)
        let configuration = URLSessionConfiguration.default
        let delegate = state.withLock { $0.delegate }
        if delegate?.downloadShouldUseCredentialStorage(self) == false { configuration.urlCredentialStorage = nil }
        let adaptor = DownloadAdaptor(self)
        let session = URLSession(configuration: configuration, delegate: adaptor, delegateQueue: runLoops)
        session.lane.append(.call { [self] in load(adaptor, session) })
    }

    private func load(_ adaptor: DownloadAdaptor, _ session: URLSession) {
        defer { session.finishTasksAndInvalidate() }
        guard !state.withLock({ $0.isOver }) else { return }
        self.delegate?.downloadDidBegin(self)
        let task: URLSessionTask
        if let resumed {
            task = session.downloadTask(withResumeData: resumed)
        } else {
            let first = original.canonical
            guard
                let request = self.delegate.map({ $0.download(self, willSend: first, redirectResponse: nil) }) ?? first
            else {
                return end { $0.download(self, didFailWithError: URLError.described(.cancelled)) }
            }
            task = session.dataTask(with: request)
        }
        follow(task)
        if state.withLock({ $0.isOver }) { task.cancel() } else { task.resume() }
    }

    final func follow(_ task: URLSessionTask) { state.withLock { $0.task = task } }

    /// The delegate; `nil` after the end of the download.
    final var delegate: (any NSURLDownloadDelegate)? { state.withLock { $0.isOver ? nil : $0.delegate } }

    /// Makes the last call to the delegate.
    final func end(_ call: (any NSURLDownloadDelegate) -> Void) {
        let delegate = state.withLock { state -> (any NSURLDownloadDelegate)? in
            defer { state.isOver = true }
            return state.isOver ? nil : state.delegate.take()
        }
        if let delegate { call(delegate) }
    }

    final func keep(_ data: Data?) { state.withLock { if !$0.deletesUponFailure { $0.resumeData = data } } }

    /// Moves the complete file to its destination.
    final func take(_ location: URL, suggested: String) throws -> String {
        let fallback = FileManager.default.temporaryDirectory.appendingPathComponent(suggested).path
        let (path, overwrites) = state.withLock { $0.destination } ?? (fallback, false)
        let place = overwrites ? URL(fileURLWithPath: path) : Self.free(path)
        // In one step: a file that is replaced stays until the new one has its name, and a folder is not replaced.
        do throws(LoadError) {
            try DownloadedFile.move(location, to: place, overwriting: overwrites)
        } catch { throw URLError(error) }
        return place.path
    }

    /// Returns a path that names nothing, not even a symbolic link without a target, with a number added if necessary.
    private static func free(_ path: String) -> URL {
        let wanted = URL(fileURLWithPath: path)
        let stem = wanted.deletingPathExtension().lastPathComponent
        let suffix = wanted.pathExtension
        var place = wanted
        var number = 1
        while (try? FileManager.default.attributesOfItem(atPath: place.path)) != nil {
            number += 1
            let name = "\(stem)-\(number)" + (suffix.isEmpty ? "" : ".\(suffix)")
            place = wanted.deletingLastPathComponent().appendingPathComponent(name)
        }
        return place
    }
}
