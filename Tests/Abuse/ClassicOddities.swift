// SPDX-License-Identifier: Apache-2.0

// Abuse of the rest of the classic API: NSURLConnection, storages, sessions, members of tasks that have ended; and
// programs that block the threads of Swift's pool.

import Foundation
import Synchronization
import URLLoading
import URLLoadingCompatibility

enum ClassicOddities {
    static let all = [
        Operation("classic.connection", 3, connection),
        Operation("classic.synchronous", 2, synchronous),
        Operation("classic.connectionDelegate", 2, connectionDelegate),
        Operation("classic.cache", 16, cache),
        Operation("classic.cookies", 16, cookies),
        Operation("classic.allTasks", 8, allTasks),
        Operation("classic.flush", 1, flush),
        Operation("classic.session", 2, session),
        Operation("classic.lostSession", 2, lostSession),
        Operation("classic.afterEnd", 5, afterEnd),
        Operation("classic.nested", 4, nested),
        Operation("classic.suspendedQueue", 2, suspendedQueue),
        Operation("classic.semaphore", 2, semaphore),
        Operation("classic.blockedPool", 1, blockedPool),
    ]

    private static func request(_ world: World, _ dice: inout Dice) -> URLRequest {
        // These sessions are the process's own: what would not end soon has a short time-out.
        var request = URLRequest(url: world.url(&dice))
        request.timeoutInterval = 2
        return request
    }

    private static let queue: OperationQueue = {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 4
        return queue
    }()

    @Sendable private static func connection(_ world: World, _ dice: inout Dice) async {
        let request = request(world, &dice)
        let ticket = world.ledger.open("classic.connection \(request.url?.path ?? ""), seed \(dice.seed)")
        let blocked = dice.block()
        NSURLConnection.sendAsynchronousRequest(request, queue: queue) { _, _, error in
            block(blocked)
            ticket.close(error)
        }
    }

    @Sendable private static func synchronous(_ world: World, _ dice: inout Dice) async {
        let request = request(world, &dice)
        let ticket = world.ledger.open("classic.synchronous \(request.url?.path ?? ""), seed \(dice.seed)")
        DispatchQueue.global().async {
            do {
                var response: URLResponse?
                _ = try NSURLConnection.sendSynchronousRequest(request, returning: &response)
                ticket.close()
            } catch { ticket.close(error) }
        }
    }

    private final class ConnectionDelegate: NSObject, NSURLConnectionDataDelegate, Sendable {
        private let ticket: Ticket
        init(_ ticket: Ticket) { self.ticket = ticket }
        func connection(_ connection: NSURLConnection, didFailWithError error: any Error) { ticket.close(error) }
        func connectionDidFinishLoading(_ connection: NSURLConnection) { ticket.close() }
    }

    @Sendable private static func connectionDelegate(_ world: World, _ dice: inout Dice) async {
        let request = request(world, &dice)
        let ticket = world.ledger.open("classic.connectionDelegate \(request.url?.path ?? ""), seed \(dice.seed)")
        let delegate = ConnectionDelegate(ticket)
        guard let connection = NSURLConnection(request: request, delegate: delegate, startImmediately: false) else {
            return ticket.close()
        }
        connection.setDelegateQueue(queue)
        connection.start()
        connection.start()
    }

    @Sendable private static func cache(_ world: World, _ dice: inout Dice) async {
        let cache = world.cache
        let url = world.servers.url("/cached")
        let request = URLRequest(url: url)
        switch dice.number(0..<8) {
        case 0: cache.removeAllCachedResponses()
        case 1: cache.removeCachedResponse(for: request)
        case 2: cache.memoryCapacity = dice.number(0..<2_000_000)
        case 3: cache.diskCapacity = dice.number(0..<4_000_000)
        case 4:
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 3, textEncodingName: nil)
            cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("abc".utf8)), for: request)
        case 5: _ = (cache.currentDiskUsage, cache.currentMemoryUsage)
        case 6:
            let ticket = world.ledger.open("classic.cache: getCachedResponse, seed \(dice.seed)")
            let task = world.classic[0].dataTask(with: request) { _, _, _ in }
            cache.getCachedResponse(for: task) { _ in ticket.close() }
            task.cancel()
        default: _ = cache.cachedResponse(for: request)
        }
    }

    @Sendable private static func cookies(_ world: World, _ dice: inout Dice) async {
        let storage = world.cookies
        let url = world.servers.url("/cookie")
        switch dice.number(0..<6) {
        case 0: for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
        case 1: _ = storage.cookies(for: url)
        case 2: storage.removeCookies(since: .distantPast)
        case 3: storage.cookieAcceptPolicy = dice.pick([.always, .never, .onlyFromMainDocumentDomain])
        case 4:
            let cookie = HTTPCookie(properties: [
                .name: "n\(dice.number(0..<20))", .value: "v", .domain: "127.0.0.1", .path: "/",
            ])
            if let cookie { storage.setCookie(cookie) }
        default:
            let ticket = world.ledger.open("classic.cookies: getCookiesFor, seed \(dice.seed)")
            let task = world.classic[0].dataTask(with: url) { _, _, _ in }
            storage.getCookiesFor(task) { _ in ticket.close() }
            task.cancel()
        }
    }

    @Sendable private static func allTasks(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let ticket = world.ledger.open("classic.allTasks, seed \(dice.seed)")
        let cancels = dice.chance(5)
        if dice.chance(50) {
            session.getAllTasks { tasks in
                if cancels { for task in tasks { task.cancel() } }
                ticket.close()
            }
        } else {
            session.getTasksWithCompletionHandler { _, _, _ in ticket.close() }
        }
    }

    @Sendable private static func flush(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let ticket = world.ledger.open("classic.flush, seed \(dice.seed)")
        if dice.chance(50) { session.flush { ticket.close() } } else { session.reset { ticket.close() } }
    }

    /// A session that ends while its tasks run, some of which were never resumed.
    @Sendable private static func session(_ world: World, _ dice: inout Dice) async {
        let delegate = AbuseDelegate(world.ledger, seed: dice.seed)
        let queue: OperationQueue? = dice.chance(50) ? OperationQueue() : nil
        let session = URLSession(
            configuration: World.classicConfiguration(), delegate: delegate, delegateQueue: queue)
        delegate.expectEnd(world.ledger.open("classic.session: didBecomeInvalid, seed \(dice.seed)"))
        for _ in 0..<dice.number(1..<6) {
            let (request, isShort) = ClassicOperations.request(world, &dice)
            let label = "classic.session \(request.url?.path ?? ""), seed \(dice.seed)"
            let task: URLSessionTask
            if dice.chance(50) {
                let ticket = world.ledger.open(label)
                task = session.dataTask(with: request) { ticket.close($2) }
            } else {
                task = session.dataTask(with: request)
                delegate.expect(task, label)
            }
            // Only a session that is invalidated with its tasks ends a task that was not resumed.
            task.resume()
            if !isShort { later(2_000) { task.cancel() } }
        }
        try? await Task.sleep(for: .microseconds(dice.moment()))
        if dice.chance(50) { session.finishTasksAndInvalidate() }
        if dice.chance(60) { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
        let ticket = world.ledger.open("classic.session: a task after the end, seed \(dice.seed)")
        session.dataTask(with: world.servers.url("/small")) { ticket.close($2) }.resume()
    }

    /// The program keeps neither the session nor the task.
    @Sendable private static func lostSession(_ world: World, _ dice: inout Dice) async {
        let ticket = world.ledger.open("classic.lostSession, seed \(dice.seed)")
        let url = world.url(&dice)
        let session = URLSession(configuration: World.classicConfiguration())
        session.dataTask(with: url) { ticket.close($2) }.resume()
        if dice.chance(30) { session.finishTasksAndInvalidate() }
    }

    @Sendable private static func afterEnd(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let ticket = world.ledger.open("classic.afterEnd, seed \(dice.seed)")
        let (request, _) = (URLRequest(url: world.url(&dice)), 0)
        let kept = Mutex<URLSessionDataTask?>(nil)
        let task = session.dataTask(with: request) { _, _, error in
            let task = kept.withLock { $0 }
            for _ in 0..<2 {
                task?.resume()
                task?.suspend()
                task?.cancel()
                _ = (task?.progress.fractionCompleted, task?.state, task?.error, task?.response, task?.description)
                task?.priority = 1
                task?.taskDescription = "over"
                task?.delegate = nil
                task?.earliestBeginDate = Date()
            }
            ticket.close(error)
            kept.withLock { $0 = nil }
        }
        kept.withLock { $0 = task }
        task.resume()
    }

    /// A completion handler that starts the next load, in the same session.
    @Sendable private static func nested(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let (first, second) = (
            world.ledger.open("classic.nested 1, seed \(dice.seed)"),
            world.ledger.open("classic.nested 2, seed \(dice.seed)")
        )
        let (url, next) = (world.url(&dice), world.url(&dice))
        session.dataTask(with: url) { _, _, error in
            session.dataTask(with: next) { second.close($2) }.resume()
            first.close(error)
        }.resume()
    }

    /// A delegate queue of the program that does not run for a while.
    @Sendable private static func suspendedQueue(_ world: World, _ dice: inout Dice) async {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let delegate = AbuseDelegate(world.ledger, seed: dice.seed)
        let session = URLSession(
            configuration: World.classicConfiguration(), delegate: delegate, delegateQueue: queue)
        delegate.expectEnd(world.ledger.open("classic.suspendedQueue: didBecomeInvalid, seed \(dice.seed)"))
        queue.isSuspended = true
        let request = URLRequest(url: world.url(&dice))
        let task = session.dataTask(with: request)
        delegate.expect(task, "classic.suspendedQueue, seed \(dice.seed)")
        task.resume()
        let ticket = world.ledger.open("classic.suspendedQueue: handler, seed \(dice.seed)")
        session.dataTask(with: request) { ticket.close($2) }.resume()
        try? await Task.sleep(for: .microseconds(dice.moment()))
        if dice.chance(50) { task.cancel() }
        if dice.chance(50) { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
        later(10_000) { queue.isSuspended = false }
    }

    /// Swift tasks that block threads of the pool until completion handlers have run, as programs do that were written
    /// for other loaders.
    @Sendable private static func semaphore(_ world: World, _ dice: inout Dice) async {
        let (session, ledger, seed) = (dice.pick([world.classic[0], world.classic[1]]), world.ledger, dice.seed)
        let urls = (0..<dice.number(1..<4)).map { _ in world.url(&dice) }
        await withDiscardingTaskGroup { group in
            for url in urls {
                group.addTask {
                    let done = DispatchSemaphore(value: 0)
                    let ticket = ledger.open("classic.semaphore, seed \(seed)")
                    session.dataTask(with: url) {
                        ticket.close($2)
                        done.signal()
                    }.resume()
                    if !blocked(done, seconds: 10) {
                        ledger.violate("classic.semaphore: no completion while the pool was blocked, seed \(seed)")
                    }
                }
            }
        }
    }

    /// The threads of the pool are blocked for a moment, without a relation to the loads.
    @Sendable private static func blockedPool(_ world: World, _ dice: inout Dice) async {
        let time = dice.number(0..<5_000)
        await withDiscardingTaskGroup { group in
            for _ in 0..<4 { group.addTask { block(time) } }
        }
    }

    /// Not in an async function, which may not call `wait`.
    private static func blocked(_ done: DispatchSemaphore, seconds: Int) -> Bool {
        done.wait(timeout: .now() + .seconds(seconds)) == .success
    }
}

/// Operations that concern the process.
enum ProcessOperations {
    static let all = [
        Operation("process.spawn", 1, spawn)
    ]

    /// Starts a program while loads run.
    @Sendable private static func spawn(_ world: World, _ dice: inout Dice) async {
        let ticket = world.ledger.open("process.spawn, seed \(dice.seed)")
        DispatchQueue.global().async {
            var identifier: pid_t = 0
            var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("/bin/true"), nil]
            let failure = posix_spawn(&identifier, "/bin/true", nil, nil, &arguments, environ)
            free(arguments[0])
            // Under a limit of threads or descriptors it may fail.
            if failure == 0 {
                var status: Int32 = 0
                while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
            }
            ticket.close()
        }
    }
}
