// SPDX-License-Identifier: Apache-2.0

// Abuse of the modern API: requests, tasks, bodies, downloads, uploads, decisions, sessions.

import Foundation
import URLLoading
import URLLoadingWire

enum ModernOperations {
    static let all = [
        Operation("modern.data", 30, data),
        Operation("modern.cancel", 10, cancel),
        Operation("modern.dataURL", 40, dataURL),
        Operation("modern.task", 20, task),
        Operation("modern.unstarted", 40, unstarted),
        Operation("modern.drop", 8, drop),
        Operation("modern.suspend", 6, suspend),
        Operation("modern.events", 8, events),
        Operation("modern.body", 12, body),
        Operation("modern.keptBody", 3, keptBody),
        Operation("modern.download", 4, download),
        Operation("modern.downloadClosure", 3, downloadClosure),
        Operation("modern.resume", 3, resume),
        Operation("modern.upload", 8, upload),
        Operation("modern.uploadFault", 6, uploadFault),
        Operation("modern.decisions", 10, decisions),
        Operation("modern.becoming", 3, becoming),
        Operation("modern.handler", 6, handler),
        Operation("modern.metrics", 2, metrics),
        Operation("modern.afterEnd", 6, afterEnd),
        Operation("modern.withSession", 2, scopedSession),
        Operation("modern.session", 2, session),
        Operation("modern.lostSession", 2, lostSession),
        Operation("modern.mainActor", 3, mainActor),
        Operation("modern.store", 20, store),
    ]

    @Sendable private static func data(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = world.url(&dice)
        _ = await attempt(world) { try await session.data(from: url) }
    }

    /// The caller's task is cancelled at a random moment.
    @Sendable private static func cancel(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let (url, _) = world.anyURL(&dice)
        let moment = dice.moment()
        let load = Task { _ = await attempt(world) { try await session.data(from: url) } }
        if moment > 0 { try? await Task.sleep(for: .microseconds(moment)) }
        load.cancel()
        await load.value
    }

    @Sendable private static func dataURL(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let text = dice.pick(["data:,hello", "data:text/plain;base64,aGVsbG8=", "data:;base64,====", "data:"])
        guard let url = URL(string: text) else { return }
        _ = await attempt(world) { try await session.data(from: url) }
    }

    /// A task that is resumed several times, and awaited by several tasks.
    @Sendable private static func task(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let (url, isShort) = world.anyURL(&dice)
        let task = session.dataTask(from: url)
        for _ in 0...dice.number(0..<2) { task.resume() }
        let cancels = !isShort || dice.chance(20)
        let moment = dice.moment()
        if cancels { later(moment) { task.cancel() } }
        if dice.chance(30) {
            async let first: Data? = attempt(world) { try await task.value }
            async let second: Response? = attempt(world) { try await task.response }
            _ = await (first, second)
        }
        _ = await attempt(world) { try await task.value }
    }

    /// A task that is never resumed, or cancelled first.
    @Sendable private static func unstarted(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let task = session.dataTask(from: world.url(&dice))
        switch dice.number(0..<4) {
        case 0: break
        case 1: task.cancel()
        case 2:
            task.cancel()
            task.resume()
        default:
            task.suspend()
            task.cancel()
        }
        if dice.chance(50) {
            task.cancel()
            _ = await attempt(world) { try await task.value }
        }
    }

    /// The last handle is released while the load runs; its events must end.
    @Sendable private static func drop(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let (url, _) = world.anyURL(&dice)
        var task: LoadTask<Data>? = session.dataTask(from: url)
        let events = dice.chance(30) ? task?.events : nil
        task?.resume()
        try? await Task.sleep(for: .microseconds(dice.moment()))
        if events != nil { task?.cancel() }
        task = nil
        if let events { for await _ in events {} }
    }

    @Sendable private static func suspend(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let (url, isShort) = world.anyURL(&dice)
        let task = session.dataTask(from: url)
        task.resume()
        for _ in 0..<dice.number(1..<5) {
            if dice.chance(50) { task.suspend() } else { task.resume() }
            if dice.chance(50) { try? await Task.sleep(for: .microseconds(dice.moment())) }
        }
        task.resume()
        if !isShort { task.cancel() }
        _ = await attempt(world) { try await task.value }
    }

    /// Each sequence of events ends exactly once.
    @Sendable private static func events(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let (url, isShort) = world.anyURL(&dice)
        let task = session.dataTask(from: url)
        let leaves = dice.chance(20)
        let first = task.events
        let second = task.events
        task.resume()
        let moment = dice.moment()
        if !isShort { later(moment) { task.cancel() } }
        async let value: Data? = attempt(world) { try await task.value }
        async let seen: Int = {
            var ends = 0
            for await event in first {
                if leaves { return 1 }
                if case .completed = event { ends += 1 }
            }
            return ends
        }()
        for await _ in second {}
        let ends = await seen
        if ends != 1 { world.ledger.violate("modern.events: \(ends) ends of \(url), seed \(dice.seed)") }
        _ = await value
    }

    @Sendable private static func body(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let (url, isShort) = world.anyURL(&dice)
        let limit = isShort && dice.chance(60) ? Int.max : dice.number(0..<3)
        let (way, throwing, blocked) = (dice.number(0..<4), dice.chance(20), dice.block())
        let load = Task {
            _ = await attempt(world) {
                try await session.load(Request(url: url)) { _, body in
                    var seen = 0
                    switch way {
                    case 0:
                        for try await _ in body.lines {
                            seen += 1
                            if seen > limit { break }
                        }
                    case 1:
                        for try await _ in body.bytes {
                            seen += 1
                            if seen > min(limit, 4096) { break }
                        }
                    case 2:
                        for try await _ in body.serverSentEvents {
                            seen += 1
                            if seen > limit { break }
                        }
                    default:
                        for try await _ in body {
                            block(blocked)
                            seen += 1
                            if seen > limit { break }
                        }
                    }
                    if throwing { throw Thrown() }
                }
            }
        }
        // Lines and events of an endless body without a line end wait for their limits.
        if !isShort {
            try? await Task.sleep(for: .microseconds(dice.moment()))
            load.cancel()
        }
        await load.value
    }

    /// A body that is iterated after its scope, and by two tasks at once.
    @Sendable private static func keptBody(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = world.url(&dice)
        let kept = await attempt(world) { try await session.load(Request(url: url)) { _, body in body } }
        if let kept {
            async let first: Void? = attempt(world) { for try await _ in kept {} }
            _ = await attempt(world) { for try await _ in kept {} }
            _ = await first
        }
        let task = session.dataTask(from: url)
        task.resume()
        guard let body = await attempt(world, { try await task.body }) else { return }
        async let first: Void? = attempt(world) { for try await _ in body {} }
        async let second: Void? = attempt(world) { for try await _ in body { break } }
        async let third: Data? = attempt(world) { try await task.value }
        _ = await (first, second, third)
    }

    @Sendable private static func download(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let (url, isShort) = world.anyURL(&dice)
        let place = world.newFile()
        let options = dice.chance(50) ? DownloadOptions(destination: place) : DownloadOptions()
        let task = session.downloadTask(Request(url: url), options: options)
        task.resume()
        let moment = dice.moment()
        if !isShort || dice.chance(20) { later(moment) { task.cancel() } }
        _ = await attempt(world) { try await task.value }
        try? FileManager.default.removeItem(at: place)
    }

    @Sendable private static func downloadClosure(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = world.url(&dice)
        let (blocked, throwing) = (dice.block(), dice.chance(30))
        _ = await attempt(world) {
            try await session.download(Request(url: url)) { file in
                block(blocked)
                if throwing { throw Thrown() }
                _ = try file.content(upTo: 10)
            }
        }
    }

    @Sendable private static func resume(_ world: World, _ dice: inout Dice) async {
        let session = world.modern[0]
        let place = world.newFile()
        let request = Request(url: world.servers.url("/file", dice.pick([.plain, .tls, .h2])))
        let task = session.downloadTask(request, options: DownloadOptions(destination: place))
        task.resume()
        try? await Task.sleep(for: .microseconds(dice.moment()))
        async let value: DownloadedFile? = attempt(world) { try await task.value }
        let token = await task.cancelProducingResumeToken()
        _ = await value
        if let token {
            async let again: Response? = attempt(world) { try await session.download(resuming: token, to: place) }
            // The token is used twice at the same time, which one of the two may not survive.
            if dice.chance(20) { _ = await attempt(world) { try await session.download(resuming: token, to: place) } }
            _ = await again
        }
        try? FileManager.default.removeItem(at: place)
    }

    private static func requestBody(_ world: World, _ dice: inout Dice) -> RequestBody {
        switch dice.number(0..<6) {
        case 0: return .data(Data())
        case 1: return .data(Data(repeating: 0x61, count: dice.number(0..<20_000)))
        case 2: return .file(world.file)
        case 3: return .file(world.file, range: 10..<5_000)
        case 4: return .form([("a", "b"), ("c", "ä")])
        default:
            let (count, size) = (dice.number(0..<8), dice.number(0..<3_000))
            return .stream(length: dice.chance(50) ? Int64(count * size) : nil) {
                Pieces(count: count, size: size, fault: .none)
            }
        }
    }

    @Sendable private static func upload(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let path = dice.pick(["/sink", "/sink", "/sink", "/refused", "/hops", "/login"])
        let request = Request(url: world.servers.url(path, world.server(&dice)), method: .post)
        let body = requestBody(world, &dice)
        let cancels = dice.chance(20)
        let moment = dice.moment()
        let load = Task { _ = await attempt(world) { try await session.upload(request, from: body) } }
        if cancels {
            try? await Task.sleep(for: .microseconds(moment))
            load.cancel()
        }
        await load.value
    }

    /// Bodies that throw, block, end early, never end, or are not there.
    @Sendable private static func uploadFault(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let request = Request(url: world.servers.url("/sink", world.server(&dice)), method: .put)
        let fault = dice.pick(Pieces.Fault.allCases)
        let length = dice.pick([nil, 0, 10, 1_000_000] as [Int64?])
        var decisions = Decisions()
        let throwing = dice.chance(30)
        decisions.bodyProvider = Decision { _ in
            if throwing { throw Thrown() }
            return .stream { Pieces(count: 3, size: 10, fault: fault) }
        }
        let body: RequestBody =
            switch dice.number(0..<4) {
            case 0: .provided
            case 1: .file(world.folder.appending(path: "nothing"))
            default: .stream(length: length) { Pieces(count: 5, size: 100, fault: fault) }
            }
        let task = session.uploadTask(request, from: body, decisions: decisions)
        task.resume()
        let moment = dice.moment()
        later(20_000 + moment) { task.cancel() }
        _ = await attempt(world) { try await task.value }
    }

    /// How a closure of the program behaves.
    private enum Manner: CaseIterable { case answer, block, sleep, fail, never, deaf }

    private static func decision<Question, Answer>(
        _ dice: inout Dice, _ answer: @escaping @Sendable (Question) -> Answer
    ) -> Decision<Question, Answer> {
        let manner = dice.pick(Manner.allCases)
        let limit: Duration? = dice.chance(50) ? .milliseconds(dice.number(1..<20)) : nil
        return Decision(timeout: limit) { question in
            switch manner {
            case .answer: break
            case .block: usleep(1_000)
            case .sleep: try await Task.sleep(for: .milliseconds(2))
            case .fail: throw Thrown()
            case .never: try await Task.sleep(for: .seconds(60))
            case .deaf: await withUnsafeContinuation { continuation in later(30_000) { continuation.resume() } }
            }
            return answer(question)
        }
    }

    @Sendable private static func decisions(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = world.servers.url(dice.pick(["/hop", "/hops", "/login", "/cached", "/loop"]), world.server(&dice))
        var decisions = Decisions()
        let redirect = dice.pick([RedirectDecision.follow, .doNotFollow, .cancel, .instead(Request(url: url))])
        decisions.redirect = decision(&dice) { _ in redirect }
        if dice.chance(50) {
            let disposition = dice.pick([ResponseDisposition.allow, .cancel, .becomeDownload()])
            decisions.response = decision(&dice) { _ in disposition }
        }
        let challenge = dice.pick([
            ChallengeDecision.use(Credential(user: "a", password: "b")), .cancel, .rejectProtectionSpace,
            .continueWithoutCredential, .performDefaultHandling,
        ])
        decisions.challenge = decision(&dice) { _ in challenge }
        if dice.chance(50) { decisions.cache = decision(&dice) { _ in .store } }
        let given = decisions
        let moment = dice.moment()
        let load = Task {
            _ = await attempt(world) { try await session.data(for: Request(url: url), decisions: given) }
        }
        // A closure that never answers is waited for until the resource timeout.
        if dice.chance(90) {
            try? await Task.sleep(for: .microseconds(moment + 1_000))
            load.cancel()
        }
        await load.value
    }

    /// A data task that becomes a download or a stream.
    @Sendable private static func becoming(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let becomesStream = dice.chance(50)
        let url = world.servers.url(dice.pick(["/small", "/medium", "/slow"]), dice.pick([.plain, .tls, .faulty]))
        var decisions = Decisions()
        decisions.response = Decision { _ in becomesStream ? .becomeStream : .becomeDownload() }
        let task = session.dataTask(Request(url: url), decisions: decisions)
        let events = task.events
        task.resume()
        if dice.chance(20) {
            let moment = dice.moment()
            later(moment) { task.cancel() }
        }
        for await event in events {
            switch event {
            case .becameDownload(let download):
                if dice.chance(30) { download.cancel() }
                _ = await attempt(world) { try await download.value }
            case .becameStream(let stream):
                if dice.chance(70) {
                    stream.resume()
                    _ = await attempt(world) { try await stream.read(timeout: .seconds(1)) }
                }
                stream.cancel()
            default: break
            }
        }
    }

    @Sendable private static func handler(_ world: World, _ dice: inout Dice) async {
        // The fifth session has the handlers; their choice is in the query.
        let session = world.modern[5]
        let url = world.servers.url("\(world.path(&dice))?\(dice.number(0..<10))", world.server(&dice))
        let moment = dice.moment()
        let load = Task { _ = await attempt(world) { try await session.data(from: url) } }
        try? await Task.sleep(for: .microseconds(moment + 2_000))
        load.cancel()
        await load.value
    }

    /// Metrics of a task whose body is not read.
    @Sendable private static func metrics(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let task = session.dataTask(
            from: world.servers.url(dice.pick(["/medium", "/large"]), dice.pick([.plain, .tls])))
        task.resume()
        let begin = ContinuousClock.now
        let metrics = await attempt(world) { try await task.metrics }
        // A body that is not read may not keep the metrics until a timeout ends the load. Loads of other operations may
        // hold all connections to the server: a load that has waited for one has no response.
        if ContinuousClock.now - begin > .seconds(World.resource) - .milliseconds(500),
            let last = metrics?.transactions.last, last.responseStart != nil
        {
            world.ledger.violate("modern.metrics: waited for the resource timeout (\(last)), seed \(dice.seed)")
        }
    }

    /// Every member of a task after its end.
    @Sendable private static func afterEnd(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let task = session.dataTask(from: world.url(&dice))
        task.resume()
        if dice.chance(30) { task.cancel() }
        _ = await attempt(world) { try await task.value }
        for _ in 0..<2 {
            task.resume()
            task.suspend()
            task.prioritize(.high)
            task.cancel()
            _ = (task.description, task.snapshot, task.id, task.request)
        }
        for await _ in task.events {}
        _ = await attempt(world) { try await task.response }
        _ = await attempt(world) { try await task.value }
        if let body = await attempt(world, { try await task.body }) {
            _ = await attempt(world) { for try await _ in body {} }
        }
        _ = await attempt(world) { try await task.accepted }
    }

    @Sendable private static func scopedSession(_ world: World, _ dice: inout Dice) async {
        let urls = (0..<dice.number(1..<6)).map { _ in world.url(&dice) }
        let throwing = dice.chance(40)
        let configuration = world.configuration
        let task = Task {
            _ = await attempt(world) {
                try await withSession(configuration) { session in
                    for url in urls.dropFirst() { session.dataTask(from: url).resume() }
                    // Its handle is kept, so its load runs until the session ends it or it ends.
                    if let url = urls.first { _ = await attempt(world) { try await session.data(from: url) } }
                    if throwing { throw Thrown() }
                }
            }
        }
        if dice.chance(30) {
            try? await Task.sleep(for: .microseconds(dice.moment()))
            task.cancel()
        }
        await task.value
    }

    /// A session that ends while its loads run.
    @Sendable private static func session(_ world: World, _ dice: inout Dice) async {
        let session = Session(world.configuration)
        let urls = (0..<dice.number(1..<8)).map { _ in world.anyURL(&dice).0 }
        let finishes = dice.chance(30)
        await withDiscardingTaskGroup { group in
            for url in urls {
                let ticket = world.ledger.open("modern.session: a load of \(url)")
                group.addTask {
                    do {
                        _ = try await session.data(from: url)
                        ticket.close()
                    } catch { ticket.close(error) }
                }
            }
            try? await Task.sleep(for: .microseconds(dice.moment()))
            if finishes { session.finishTasksAndInvalidate() }
            if !finishes || dice.chance(50) { session.invalidateAndCancel() }
            await session.invalidated()
            if dice.chance(20) { _ = await attempt(world) { try await session.data(from: urls[0]) } }
        }
    }

    /// The program releases the session and keeps a task, or the other way round.
    @Sendable private static func lostSession(_ world: World, _ dice: inout Dice) async {
        var session: Session? = Session(world.configuration)
        guard let task = session?.dataTask(from: world.url(&dice)) else { return }
        if dice.chance(70) { task.resume() }
        try? await Task.sleep(for: .microseconds(dice.moment()))
        session = nil
        if dice.chance(50) {
            task.resume()
            _ = await attempt(world) { try await task.value }
        }
    }

    @Sendable private static func mainActor(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = world.url(&dice)
        let blocked = dice.block()
        await Task { @MainActor in
            _ = await attempt(world) {
                try await session.load(Request(url: url)) { _, body in
                    for try await _ in body { block(blocked) }
                }
            }
        }.value
    }

    /// The stores of sessions, while their loads use them.
    @Sendable private static func store(_ world: World, _ dice: inout Dice) async {
        let session = world.modern[dice.number(2..<4)]
        let url = world.servers.url("/cached", .plain)
        switch dice.number(0..<6) {
        case 0: session.configuration.caching.store?.removeAll()
        case 1: session.configuration.caching.store?.remove(for: Request(url: url))
        case 2: session.configuration.caching.store?.memoryCapacity = dice.number(0..<200_000)
        case 3: session.cookies?.removeAll()
        case 4: _ = session.configuration.caching.store?.cachedResponse(for: Request(url: url))
        default: _ = await attempt(world) { try await session.data(from: url) }
        }
    }
}
