import Synchronization
import URLLoadingIO

/// Writes a line per load, or per event, for people.
///
/// ```swift
/// configuration.observers = [LoadLogger { line in logger.info("\(line)") }]
/// // load 12 GET https://example.org/ 200 5120 bytes in 34.1 ms
/// // load 13 GET https://example.org/no failed hostNotFound (resolving, example.org) in 2.0 ms
/// ```
/// No userinfo, query, field value or body is ever written.
public final class LoadLogger: LoadObserver {
    private struct Account: Sendable {
        var status: Int?
        var received: Int64 = 0
    }
    private let write: @Sendable (String) -> Void
    private let isVerbose: Bool
    /// Of the loads that have a response and are not over.
    private let going = Lock<[UInt64: Account]>([:])

    /// - Parameters:
    ///   - verbose: a line for every event instead of one at the end of a load.
    ///   - write: takes a line without its end. Called in the loads' tasks; must not block.
    public init(verbose: Bool = false, _ write: @escaping @Sendable (String) -> Void) {
        isVerbose = verbose
        self.write = write
    }

    public func observe(_ event: LoadEvent, of load: LoadIdentity) {
        if isVerbose { return write("\(load) \(event)") }
        switch event {
        case .responded(let response): going.withLock { $0[load.id] = Account(status: response.http?.status.code) }
        case .received(let bytes): going.withLock { $0[load.id]?.received = bytes.total }
        case .completed(let error): finish(load, error)
        case .canonicalized, .bodySent, .informational, .challenged, .redirected, .retrying, .waitingForConnectivity,
            .stored, .notStored, .becameDownload,
            .becameStream, .resumed, .metrics:
            break
        }
    }

    private func finish(_ load: LoadIdentity, _ error: LoadError?) {
        let account = going.withLock { $0.removeValue(forKey: load.id) } ?? Account()
        let words = error.map { "failed \($0)" } ?? "\(account.status.map { "\($0) " } ?? "")\(account.received) bytes"
        write("\(load) \(words) in \((ContinuousClock.now - load.created).inMilliseconds) ms")
    }
}

extension Duration {
    /// With one digit after the point.
    var inMilliseconds: String {
        let tenths = components.seconds * 10_000 + components.attoseconds / 100_000_000_000_000
        return "\(tenths / 10).\(tenths % 10)"
    }
}
