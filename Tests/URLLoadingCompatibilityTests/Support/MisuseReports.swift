// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoadingCompatibility
import URLLoadingIO

/// The misuse reports of one task, while other tests run.
final class MisuseReports: Sendable {
    private static let all = Lock<[(task: ObjectIdentifier, words: String)]>([])
    private static let isInstalled: Void = {
        let before = URLSession.misuseHandler
        URLSession.misuseHandler = { misuse in
            before(misuse)
            all.withLock { $0.append((ObjectIdentifier(misuse.task), misuse.description)) }
        }
    }()
    private let task: URLSessionTask

    init(_ task: URLSessionTask) {
        self.task = task
        Self.isInstalled
        // Removes the reports of a deallocated task at the same address.
        Self.all.withLock { $0.removeAll { $0.task == ObjectIdentifier(task) } }
    }

    var all: [String] {
        Self.all.withLock { all in all.filter { $0.task == ObjectIdentifier(task) }.map(\.words) }
    }
}

/// Holds one completion handler until another replaces it.
final class Lockbox: Sendable {
    typealias Handler = @Sendable (URLSession.ResponseDisposition) -> Void
    private let handler = Lock<Handler?>(nil)
    func keep(_ new: Handler?) {
        let old = handler.withLock { handler in
            defer { handler = new }
            return handler
        }
        withExtendedLifetime(old) {}
    }
    func answer(_ disposition: URLSession.ResponseDisposition) { handler.withLock { $0 }?(disposition) }
}
