// SPDX-License-Identifier: Apache-2.0

// In this folder: the library's own observers: log lines, counts, traces

import Synchronization
import URLLoadingIO

/// An observer that writes a log line per load, or per event.
///
/// ```swift
/// configuration.observers = [LoadLogger { line in logger.info("\(line)") }]
/// // load 12 GET https://example.org/ 200 5120 bytes in 34.1 ms
/// // load 13 GET https://example.org/ 200 5120 bytes from the cache in 0.2 ms
/// // load 14 GET https://example.org/no failed connectionRefused (connecting, https://example.org/no) in 2.0 ms
/// ```
/// A stored response is marked, revalidated or not.
///
/// Userinfo, queries, field values and bodies are never written.
public final class LoadLogger: LoadObserver {
    private struct Account: Sendable {
        var status: Int?
        var received: Int64 = 0
        var isStored = false
    }
    private let write: @Sendable (String) -> Void
    private let isVerbose: Bool
    /// The accounts of loads that have a response and have not ended.
    private let going = Lock<[UInt64: Account]>([:])

    /// Creates a logger that writes lines to a closure.
    /// - Parameters:
    ///   - verbose: true for a line per event instead of one at the end of a load.
    ///   - write: receives a line without its line ending. Called in the loads' tasks; must not block.
    public init(verbose: Bool = false, _ write: @escaping @Sendable (String) -> Void) {
        isVerbose = verbose
        self.write = write
    }

    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        if isVerbose { return write("\(load) \(event)") }
        switch event {
        case .responded(let response): going.withLock { $0[load.id] = Account(status: response.http?.status.code) }
        case .received(let bytes): going.withLock { $0[load.id]?.received = bytes.total }
        case .metrics(let metrics):
            going.withLock { $0[load.id]?.isStored = metrics.transactions.last?.fetchType == .cache }
        case .completed(let error): finish(load, error)
        case .canonicalized, .bodySent, .informational, .challenged, .redirected, .retrying, .retryRefused,
            .waitingForConnectivity,
            .stored, .notStored, .becameDownload,
            .becameStream, .resumed:
            break
        }
    }

    private func finish(_ load: LoadIdentity, _ error: LoadError?) {
        let account = going.withLock { $0.removeValue(forKey: load.id) } ?? Account()
        var words = error.map { "failed \($0)" } ?? "\(account.status.map { "\($0) " } ?? "")\(account.received) bytes"
        if error == nil, account.isStored { words += " from the cache" }
        write("\(load) \(words) in \((ContinuousClock.now - load.created).inMilliseconds) ms")
    }
}
