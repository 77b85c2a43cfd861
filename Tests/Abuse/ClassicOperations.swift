// SPDX-License-Identifier: Apache-2.0

// Abuse of the classic API: tasks with completion handlers and with delegates.

import Foundation
import URLLoading
import URLLoadingCompatibility

enum ClassicOperations {
    static let all = [
        Operation("classic.data", 30, data),
        Operation("classic.dataURL", 40, dataURL),
        Operation("classic.unstarted", 40, unstarted),
        Operation("classic.delegate", 20, delegate),
        Operation("classic.async", 12, async),
        Operation("classic.bytes", 4, bytes),
        Operation("classic.upload", 8, upload),
        Operation("classic.stream", 5, stream),
        Operation("classic.streamTwice", 3, streamTwice),
        Operation("classic.streamClosed", 2, streamClosed),
        Operation("classic.streamFailing", 2, streamFailing),
        Operation("classic.download", 6, download),
        Operation("classic.resumeData", 4, resumeData),
        Operation("classic.streamTask", 4, streamTask),
        Operation("classic.captured", 2, captured),
        Operation("classic.webSocket", 5, webSocket),
        Operation("classic.pongs", 3, pongs),
        Operation("classic.protocol", 8, ownProtocol),
    ]

    /// Takes one of the controls of a task at random, a few times.
    static func abuse(_ task: URLSessionTask, _ dice: inout Dice) {
        // The classic API counts suspensions.
        var resumes = 1
        for _ in 0..<dice.number(0..<4) {
            switch dice.number(0..<7) {
            case 0:
                task.suspend()
                resumes += 1
            case 1: task.priority = Float(dice.number(0..<3)) / 2
            case 2: _ = (task.state, task.response, task.error, task.countOfBytesReceived, task.description)
            case 3: _ = (task.progress.fractionCompleted, task.progress.isFinished)
            case 4: _ = (task.currentRequest, task.originalRequest)
            case 5: if dice.chance(10) { task.progress.cancel() }
            default: task.resume()
            }
        }
        for _ in 0..<resumes { task.resume() }
    }

    static func request(_ world: World, _ dice: inout Dice) -> (URLRequest, isShort: Bool) {
        let (url, isShort) = world.anyURL(&dice)
        var request = URLRequest(url: url)
        if dice.chance(10) { request.cachePolicy = .reloadIgnoringLocalCacheData }
        if dice.chance(5) { request.cachePolicy = .returnCacheDataDontLoad }
        return (request, isShort)
    }

    /// Cancels at a random moment, always if the load would not end soon.
    private static func cancel(_ task: URLSessionTask, _ isShort: Bool, _ dice: inout Dice) {
        guard !isShort || dice.chance(20) else { return }
        let moment = dice.moment()
        if dice.chance(30) { task.cancel() } else { later(moment) { task.cancel() } }
    }

    @Sendable private static func data(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let (request, isShort) = request(world, &dice)
        let ticket = world.ledger.open("classic.data \(request.url?.path ?? ""), seed \(dice.seed)")
        let blocked = dice.block()
        let task = session.dataTask(with: request) { _, _, error in
            block(blocked)
            ticket.close(error)
        }
        abuse(task, &dice)
        cancel(task, isShort, &dice)
    }

    @Sendable private static func dataURL(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        guard let url = URL(string: dice.pick(["data:,hello", "data:;base64,====", "about:blank", "nothing"])) else {
            return
        }
        let ticket = world.ledger.open("classic.dataURL, seed \(dice.seed)")
        session.dataTask(with: url) { _, _, error in ticket.close(error) }.resume()
    }

    /// A task that is released or cancelled without a `resume`.
    @Sendable private static func unstarted(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let (request, _) = request(world, &dice)
        let ticket = world.ledger.open("classic.unstarted, seed \(dice.seed)")
        let task = session.dataTask(with: request) { _, _, error in ticket.close(error) }
        if dice.chance(50) { task.suspend() }
        task.cancel()
        if dice.chance(50) { task.resume() }
    }

    @Sendable private static func delegate(_ world: World, _ dice: inout Dice) async {
        let number = dice.number(0..<4)
        let session = world.classic[number]
        guard let delegate = world.delegates[number] else { return }
        let (request, isShort) = request(world, &dice)
        let task: URLSessionTask =
            switch dice.number(0..<5) {
            case 0: session.downloadTask(with: request)
            case 1: session.uploadTask(with: request, from: Data(repeating: 0x61, count: dice.number(0..<10_000)))
            case 2: session.uploadTask(withStreamedRequest: request)
            default: session.dataTask(with: request)
            }
        delegate.expect(task, "\(type(of: task)) \(request.url?.path ?? ""), seed \(dice.seed)")
        abuse(task, &dice)
        cancel(task, isShort, &dice)
    }

    @Sendable private static func async(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let (request, isShort) = request(world, &dice)
        let (way, file) = (dice.number(0..<4), world.file)
        let load = Task {
            _ = await attempt(world) {
                switch way {
                case 0: _ = try await session.upload(for: request, from: Data("x".utf8))
                case 1: _ = try await session.upload(for: request, fromFile: file)
                case 2:
                    let (place, _) = try await session.download(for: request)
                    try? FileManager.default.removeItem(at: place)
                default: _ = try await session.data(for: request)
                }
            }
        }
        if !isShort || dice.chance(30) {
            try? await Task.sleep(for: .microseconds(dice.moment()))
            load.cancel()
        }
        await load.value
    }

    @Sendable private static func bytes(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let (request, isShort) = request(world, &dice)
        let limit = isShort && dice.chance(50) ? 200_000 : dice.number(0..<500)
        let load = Task {
            _ = await attempt(world) {
                let (bytes, _) = try await session.bytes(for: request)
                var seen = 0
                for try await _ in bytes {
                    seen += 1
                    if seen > limit { break }
                }
            }
        }
        if !isShort {
            try? await Task.sleep(for: .microseconds(dice.moment()))
            load.cancel()
        }
        await load.value
    }

    @Sendable private static func upload(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let path = dice.pick(["/sink", "/sink", "/sink", "/refused", "/hops", "/login"])
        var request = URLRequest(url: world.servers.url(path, world.server(&dice)))
        request.httpMethod = "POST"
        let ticket = world.ledger.open("classic.upload \(path), seed \(dice.seed)")
        let handler: @Sendable (Data?, URLResponse?, (any Error)?) -> Void = { ticket.close($2) }
        let task: URLSessionTask
        switch dice.number(0..<4) {
        case 0: task = session.uploadTask(with: request, fromFile: world.file, completionHandler: handler)
        case 1:
            let missing = world.folder.appending(path: "nothing")
            task = session.uploadTask(with: request, fromFile: missing, completionHandler: handler)
        case 2: task = session.uploadTask(with: request, from: nil, completionHandler: handler)
        default:
            request.httpBody = Data(repeating: 0x61, count: dice.number(0..<20_000))
            task = session.dataTask(with: request, completionHandler: handler)
        }
        abuse(task, &dice)
        cancel(task, true, &dice)
    }

    private static func send(
        _ stream: InputStream, _ name: String, _ world: World, _ dice: inout Dice, times: Int = 1,
        path: String = "/sink"
    ) {
        var request = URLRequest(url: world.servers.url(path, world.server(&dice)))
        request.httpMethod = "POST"
        request.httpBodyStream = stream
        for _ in 0..<times {
            let ticket = world.ledger.open("\(name) \(path), seed \(dice.seed)")
            let task = dice.pick(world.classic).dataTask(with: request) { ticket.close($2) }
            task.resume()
            if dice.chance(20) { cancel(task, true, &dice) }
        }
    }

    @Sendable private static func stream(_ world: World, _ dice: inout Dice) async {
        let stream: InputStream? =
            switch dice.number(0..<3) {
            case 0: InputStream(url: world.file)
            case 1: InputStream(url: world.folder.appending(path: "nothing"))
            default: InputStream(data: Data(repeating: 0x61, count: dice.number(0..<20_000)))
            }
        if let stream { send(stream, "classic.stream", world, &dice) }
    }

    /// The stream of one request is sent twice, one after the other, at the same time, or because of a redirect.
    @Sendable private static func streamTwice(_ world: World, _ dice: inout Dice) async {
        let stream = InputStream(data: Data(repeating: 0x61, count: dice.number(0..<20_000)))
        send(
            stream, "classic.streamTwice", world, &dice, times: dice.number(1..<4),
            path: dice.pick(["/sink", "/hops", "/login"]))
    }

    @Sendable private static func streamClosed(_ world: World, _ dice: inout Dice) async {
        let stream = InputStream(data: Data(repeating: 0x61, count: 100))
        stream.open()
        stream.close()
        send(stream, "classic.streamClosed", world, &dice)
    }

    @Sendable private static func streamFailing(_ world: World, _ dice: inout Dice) async {
        send(FailingStream(after: dice.number(0..<3)), "classic.streamFailing", world, &dice)
    }

    @Sendable private static func download(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let (request, isShort) = request(world, &dice)
        let ticket = world.ledger.open("classic.download \(request.url?.path ?? ""), seed \(dice.seed)")
        let (blocked, removes) = (dice.block(), dice.chance(20))
        let task = session.downloadTask(with: request) { place, _, error in
            block(blocked)
            if removes, let place { try? FileManager.default.removeItem(at: place) }
            ticket.close(error)
        }
        abuse(task, &dice)
        cancel(task, isShort, &dice)
    }

    @Sendable private static func resumeData(_ world: World, _ dice: inout Dice) async {
        let session = dice.pick(world.classic)
        let url = world.servers.url("/file", world.server(&dice))
        let (first, second) = (
            world.ledger.open("classic.resumeData: handler, seed \(dice.seed)"),
            world.ledger.open("classic.resumeData: byProducingResumeData, seed \(dice.seed)")
        )
        let task = session.downloadTask(with: url) { first.close($2) }
        task.resume()
        let (ledger, seed, again, spoils) = (world.ledger, dice.seed, dice.chance(30), dice.chance(20))
        later(dice.moment()) {
            task.cancel { data in
                second.close()
                guard let data else { return }
                for _ in 0..<(again ? 2 : 1) {
                    let third = ledger.open("classic.resumeData: resumed, seed \(seed)")
                    session.downloadTask(withResumeData: spoils ? Data(data.prefix(20)) : data) { third.close($2) }
                        .resume()
                }
            }
        }
    }

    @Sendable private static func streamTask(_ world: World, _ dice: inout Dice) async {
        let number = dice.number(0..<4)
        let session = world.classic[number]
        let port = dice.chance(90) ? Int(world.servers.port(dice.pick([.plain, .faulty, .tls]))) : 0
        let task = session.streamTask(withHostName: "127.0.0.1", port: port)
        world.delegates[number]?.expect(task, "stream task, seed \(dice.seed)")
        task.resume()
        let ledger = world.ledger
        for _ in 0..<dice.number(1..<6) {
            let label = "classic.streamTask, seed \(dice.seed)"
            switch dice.number(0..<7) {
            case 0, 1:
                let ticket = ledger.open("\(label): write")
                task.write(Data("GET /small HTTP/1.1\r\nHost: a\r\n\r\n".utf8), timeout: 0.1) { ticket.close($0) }
            case 2, 3:
                let ticket = ledger.open("\(label): read")
                task.readData(ofMinLength: 1, maxLength: 1_000, timeout: 0.05) { ticket.close($2) }
            case 4: task.closeWrite()
            case 5: task.closeRead()
            default: if dice.chance(30) { task.startSecureConnection() }
            }
        }
        let moment = dice.moment()
        later(moment + 5_000) { task.cancel() }
    }

    /// A stream task that becomes a pair of streams.
    @Sendable private static func captured(_ world: World, _ dice: inout Dice) async {
        let number = dice.number(0..<4)
        let task = world.classic[number].streamTask(
            withHostName: "127.0.0.1", port: Int(world.servers.port(.plain)))
        world.delegates[number]?.expect(task, "captured stream task, seed \(dice.seed)")
        task.resume()
        task.captureStreams()
        let moment = dice.moment()
        later(moment) { task.cancel() }
    }

    @Sendable private static func webSocket(_ world: World, _ dice: inout Dice) async {
        let number = dice.number(0..<4)
        let url = world.servers.url(
            dice.pick(["/echo", "/deflate", "/chatter", "/silent", "/small"]),
            dice.pick([.plain, .plain, .tls, .faulty]))
        let task = world.classic[number].webSocketTask(with: url)
        world.delegates[number]?.expect(task, "WebSocket \(url.path), seed \(dice.seed)")
        task.resume()
        let ledger = world.ledger
        for _ in 0..<dice.number(1..<6) {
            let label = "classic.webSocket \(url.path), seed \(dice.seed)"
            switch dice.number(0..<5) {
            case 0, 1:
                let ticket = ledger.open("\(label): send")
                task.send(.string("hello")) { ticket.close($0) }
            case 2, 3:
                let ticket = ledger.open("\(label): receive")
                task.receive { result in
                    do {
                        _ = try result.get()
                        ticket.close()
                    } catch { ticket.close(error) }
                }
            default:
                let ticket = ledger.open("\(label): ping")
                task.sendPing { ticket.close($0) }
            }
        }
        if dice.chance(40) { task.cancel(with: .goingAway, reason: Data("enough".utf8)) }
        let moment = dice.moment()
        later(moment) { task.cancel() }
    }

    /// Pong handlers are called in the order of the pings.
    @Sendable private static func pongs(_ world: World, _ dice: inout Dice) async {
        let task = world.classic[0].webSocketTask(with: world.servers.url("/echo"))
        world.delegates[0]?.expect(task, "pongs, seed \(dice.seed)")
        task.resume()
        let order = PongOrder()
        let (ledger, seed, count) = (world.ledger, dice.seed, dice.number(2..<10))
        for number in 0..<count {
            let ticket = ledger.open("classic.pongs: \(number), seed \(seed)")
            task.sendPing { error in
                if !order.isNext(number) { ledger.violate("classic.pongs: \(number) out of order, seed \(seed)") }
                ticket.close(error)
                if number == count - 1 { task.cancel() }
            }
        }
        later(50_000) { task.cancel() }
    }

    private final class PongOrder: @unchecked Sendable {
        // Unchecked: used on a serial queue only.
        private var last = -1

        func isNext(_ number: Int) -> Bool {
            defer { last = number }
            return number == last + 1
        }
    }

    @Sendable private static func ownProtocol(_ world: World, _ dice: inout Dice) async {
        let way = dice.number(0..<10)
        guard let url = URL(string: "http://abuse.test/\(way)") else { return }
        let ticket = world.ledger.open("classic.protocol \(way), seed \(dice.seed)")
        let task = dice.pick(world.classic).dataTask(with: url) { ticket.close($2) }
        task.resume()
        if way == 9 || dice.chance(30) {
            let moment = dice.moment()
            later(moment) { task.cancel() }
        }
    }
}
