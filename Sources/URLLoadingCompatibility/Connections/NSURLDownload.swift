public import Foundation
import Synchronization
import URLLoadingIO

/// One load into a file of the program's choice, as programs did it before there were sessions.
///
/// ```swift
/// let download = NSURLDownload(request: URLRequest(url: url), delegate: self)
/// // in the delegate:
/// func download(_ download: NSURLDownload, decideDestinationWithSuggestedFilename filename: String) {
///     download.setDestination("/srv/files/" + filename, allowOverwrite: false)
/// }
/// ```
/// It begins at once. The delegate is called on the run loop of the thread that made it, in its default mode, and is held
/// until its last call. While it is loaded, the file has another name, in the folder for temporary files.
open class NSURLDownload: NSObject, @unchecked Sendable {
    private struct State: Sendable {
        // The program's; called on its run loop alone.
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

    /// Goes on with one that was cancelled or has failed.
    /// - Parameters:
    ///   - resumeData: what ``resumeData`` gave.
    ///   - path: where the complete file goes.
    public init(resumeData: Data, delegate: (any NSURLDownloadDelegate)?, path: String) {
        (original, resumed) = (URLRequest(), resumeData)
        state = Lock(State(delegate: delegate, destination: (path, true)))
        super.init()
        begin()
    }

    /// Whether a download can go on whose file of this type was to be decompressed: of gzip it can, since nothing is
    /// decompressed before it is whole.
    open class func canResumeDownloadDecoded(withEncodingMIMEType MIMEType: String) -> Bool {
        CompressedFile.isKnown(MIMEType)
    }

    /// What was asked for; after redirects, the last request.
    open var request: URLRequest { state.withLock { $0.task }?.currentRequest ?? original }

    /// Ends the download. The delegate is not called any more. ``resumeData`` is there a little later, if
    /// ``deletesFileUponFailure`` is off.
    open func cancel() {
        let (task, delegate) = state.withLock { state in
            state.isOver = true
            return (state.task, state.delegate.take())
        }
        withExtendedLifetime(delegate) {}
        guard !deletesFileUponFailure, let task = task as? URLSessionDownloadTask else { return task?.cancel() ?? () }
        task.cancel { [self] in keep($0) }
    }

    /// Where the file goes. Called by the delegate, in `decideDestinationWithSuggestedFilename` or before; later calls have
    /// no effect.
    /// - Parameter allowOverwrite: whether a file that is there is replaced; otherwise a number is added to the name.
    open func setDestination(_ path: String, allowOverwrite: Bool) {
        state.withLock { if $0.destination == nil { $0.destination = (path, allowOverwrite) } }
    }

    /// With what the download can go on; `nil` while it is going on, if ``deletesFileUponFailure`` was on, and if its
    /// server does not allow it.
    open var resumeData: Data? { state.withLock { $0.resumeData } }

    /// Whether what was loaded is deleted if the download fails or is cancelled; on by default. Off, it is kept for
    /// ``resumeData``.
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

    /// `nil` once nothing more is told.
    final var delegate: (any NSURLDownloadDelegate)? { state.withLock { $0.isOver ? nil : $0.delegate } }

    /// The last call.
    final func end(_ call: (any NSURLDownloadDelegate) -> Void) {
        let delegate = state.withLock { state -> (any NSURLDownloadDelegate)? in
            defer { state.isOver = true }
            return state.isOver ? nil : state.delegate.take()
        }
        if let delegate { call(delegate) }
    }

    final func keep(_ data: Data?) { state.withLock { if !$0.deletesUponFailure { $0.resumeData = data } } }

    /// The file gets its name.
    final func take(_ location: URL, suggested: String) throws -> String {
        let fallback = FileManager.default.temporaryDirectory.appendingPathComponent(suggested).path
        let (path, overwrites) = state.withLock { $0.destination } ?? (fallback, false)
        let place = overwrites ? URL(fileURLWithPath: path) : Self.free(path)
        // Until now for its owner alone; from here on as any new file, or as the one it replaces.
        let permissions = FileWriter.permissions(at: place.path) ?? FileWriter.permissionsOfNewFiles
        if overwrites { try? FileManager.default.removeItem(at: place) }
        try FileManager.default.moveItem(at: location, to: place)
        try? FileManager.default.setAttributes([.posixPermissions: Int(permissions)], ofItemAtPath: place.path)
        return place.path
    }

    /// A name that no file has: with a number behind it, if need be.
    private static func free(_ path: String) -> URL {
        let wanted = URL(fileURLWithPath: path)
        let stem = wanted.deletingPathExtension().lastPathComponent
        let suffix = wanted.pathExtension
        var place = wanted
        var number = 1
        while FileManager.default.fileExists(atPath: place.path) {
            number += 1
            let name = "\(stem)-\(number)" + (suffix.isEmpty ? "" : ".\(suffix)")
            place = wanted.deletingLastPathComponent().appendingPathComponent(name)
        }
        return place
    }
}
