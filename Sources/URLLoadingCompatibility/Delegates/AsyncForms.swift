// Questions have two forms: with a completion handler, and async. A delegate implements one. The library calls the first
// alone; its default tries the second, and the default of the second says that it is one to the form that tries: so exactly
// one of the program's own is called, and delegates that have neither are known, too. Swift has no other way to ask
// whether a witness is a default.

import Foundation
import Synchronization
import URLLoadingIO

/// A try of an async form.
final class AsyncForm: Sendable {
    enum Method: Sendable {
        case connectionChallenge, challenge, redirect, bodyStream, bodyStreamFrom, response, delayedRequest,
            cachedResponse
    }
    @TaskLocal private static var current: AsyncForm?
    private struct Key: Hashable { let type: ObjectIdentifier, method: Method }
    /// Which types have neither form: a try of theirs would be for nothing.
    private static let without = Lock<Set<Key>>([])

    private let delegate: ObjectIdentifier
    private let method: Method
    private let isMissing = Atomic<Bool>(false)

    private init(_ delegate: ObjectIdentifier, _ method: Method) { (self.delegate, self.method) = (delegate, method) }

    /// For the default of a form with a completion handler. The async form begins here and now, and goes on where the
    /// delegate is called.
    /// - Parameter otherwise: the delegate has neither; called before this returns.
    static func answer<Value>(
        _ delegate: any URLSessionDelegate, _ method: Method, _ lane: DelegateLane?,
        _ ask: @escaping @Sendable () async -> Value, then give: @escaping @Sendable (Value) -> Void,
        otherwise: @escaping @Sendable () -> Void
    ) {
        let key = Key(type: ObjectIdentifier(type(of: delegate)), method: method)
        if without.withLock({ $0.contains(key) }) { return otherwise() }
        let form = AsyncForm(ObjectIdentifier(delegate), method)
        $current.withValue(form) {
            _ = Task.immediate(executorPreference: lane) {
                let answer = await ask()
                guard form.isMissing.load(ordering: .relaxed) else { return give(answer) }
                without.withLock { _ = $0.insert(key) }
                otherwise()
            }
        }
    }

    /// Whether a delegate was asked before, and has neither form.
    static func isKnownMissing(_ delegate: any URLSessionDelegate, _ method: Method) -> Bool {
        without.withLock { $0.contains(Key(type: ObjectIdentifier(type(of: delegate)), method: method)) }
    }

    /// For the default of an async form: whether the library tries it, so that there is none. Otherwise the program calls it,
    /// and it calls the other form.
    static func isTried(_ delegate: any URLSessionDelegate, _ method: Method) -> Bool {
        guard let current, current.method == method, current.delegate == ObjectIdentifier(delegate) else {
            return false
        }
        current.isMissing.store(true, ordering: .relaxed)
        return true
    }
}

extension URLSessionTask {
    /// Where the delegate of this task is called.
    final var lane: DelegateLane? { bridge?.lane }
}

// Unchecked: `InputStream` is not `Sendable`. The delegate gives the stream away, and the load alone reads it.
/// A stream on its way from the delegate to the load.
struct GivenStream: @unchecked Sendable {
    let stream: InputStream?
}
