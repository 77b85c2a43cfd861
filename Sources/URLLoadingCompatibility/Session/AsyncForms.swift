// SPDX-License-Identifier: Apache-2.0

// Delegate methods in two forms: with a completion handler, and async. A delegate implements one. The library calls the
// first form only. Its default implementation calls the async form, whose default implementation reports that it is a
// default. So exactly one implementation of the program is called, and delegates with neither are detected. Swift has
// no other means to find out whether a witness is a default implementation.

import Foundation
import Synchronization
import URLLoadingIO

/// A call of an async form by the default implementation of the handler form.
final class AsyncForm: Sendable {
    enum Method: Sendable {
        case connectionChallenge, challenge, redirect, bodyStream, bodyStreamFrom, response, delayedRequest,
            cachedResponse
    }
    @TaskLocal private static var current: AsyncForm?
    private struct Key: Hashable { let type: ObjectIdentifier, method: Method }
    /// The types that implement neither form, so that they are not tried again.
    private static let without = Lock<Set<Key>>([])

    private let delegate: ObjectIdentifier
    private let method: Method
    private let isMissing = Atomic<Bool>(false)

    private init(_ delegate: ObjectIdentifier, _ method: Method) { (self.delegate, self.method) = (delegate, method) }

    /// Implements the default of a form with a completion handler: begins the async form immediately, on the delegate's
    /// executor.
    /// - Parameter otherwise: called before this method returns if the delegate implements neither form.
    static func answer<Value>(
        _ delegate: AnyObject, _ method: Method, _ lane: DelegateLane?,
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

    /// Returns whether a delegate was tried before and implements neither form.
    static func isKnownMissing(_ delegate: AnyObject, _ method: Method) -> Bool {
        without.withLock { $0.contains(Key(type: ObjectIdentifier(type(of: delegate)), method: method)) }
    }

    /// Used by the default of an async form: returns true if the library is trying the form, which reveals that it is
    /// not implemented. Otherwise the program calls it, and the default calls the handler form.
    static func isProbing(_ delegate: AnyObject, _ method: Method) -> Bool {
        guard let current, current.method == method, current.delegate == ObjectIdentifier(delegate) else {
            return false
        }
        current.isMissing.store(true, ordering: .relaxed)
        return true
    }
}

/// A stream being handed from the delegate to the load.
struct GivenStream: Sendable {
    // Unsafe: `InputStream` is not `Sendable`. The delegate hands over the stream, and only the load reads it.
    nonisolated(unsafe) let stream: InputStream?
}
