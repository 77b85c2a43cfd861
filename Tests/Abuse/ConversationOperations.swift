// SPDX-License-Identifier: Apache-2.0

// Abuse of the modern API's conversations: WebSockets, streams, server-sent events, ftp.

import Foundation
import URLLoading
import URLLoadingWire

enum ConversationOperations {
    static let all = [
        Operation("modern.webSocket", 6, webSocket),
        Operation("modern.socketScope", 3, socketScope),
        Operation("modern.stream", 5, stream),
        Operation("modern.streamClose", 4, streamClose),
        Operation("modern.eventStream", 3, eventStream),
        Operation("modern.ftp", 1, ftp),
    ]

    private static func socketURL(_ world: World, _ dice: inout Dice) -> URL {
        world.servers.url(
            dice.pick(["/echo", "/echo", "/deflate", "/chatter", "/silent", "/small"]),
            dice.pick([.plain, .plain, .tls, .faulty]))
    }

    @Sendable private static func webSocket(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        var options = WebSocketOptions()
        options.closeTimeout = .milliseconds(200)
        let socket = session.webSocketTask(socketURL(world, &dice), options: options)
        socket.resume()
        let moment = dice.moment()
        if dice.chance(30) { later(moment) { socket.cancel() } }
        later(100_000) { socket.cancel() }
        if dice.chance(70) { _ = await attempt(world) { try await socket.opened } }
        let (sends, size) = (dice.number(0..<5), dice.number(0..<5_000))
        async let sent: Void? = attempt(world) {
            for _ in 0..<sends { try await socket.send(.data(Data(repeating: 0x65, count: size))) }
            try await socket.ping(timeout: .milliseconds(100))
        }
        let receives = dice.number(0..<5)
        async let received: Void? = attempt(world) { for _ in 0..<receives { _ = try await socket.receive() } }
        if dice.chance(30) { await socket.close() }
        _ = await (sent, received)
        if dice.chance(50) { await socket.close(WebSocketClose(.goingAway, reason: "enough")) }
        socket.cancel()
        _ = await socket.ended()
        _ = await attempt(world) { try await socket.send(.text("late")) }
        _ = await attempt(world) { try await socket.receive() }
    }

    @Sendable private static func socketScope(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = socketURL(world, &dice)
        let (throwing, cancels, moment) = (dice.chance(30), dice.chance(30), dice.moment())
        var options = WebSocketOptions()
        options.closeTimeout = .milliseconds(100)
        let given = options
        let task = Task {
            _ = await attempt(world) {
                try await session.webSocket(Request(url: url), options: given) { socket in
                    try await socket.send(.text("hello"))
                    if throwing { throw Thrown() }
                    for try await _ in socket.messages { break }
                }
            }
        }
        try? await Task.sleep(for: .microseconds(cancels ? moment : 50_000))
        task.cancel()
        await task.value
    }

    @Sendable private static func stream(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let secure = dice.chance(30)
        let task = session.streamTask(
            host: "127.0.0.1", port: Int(world.servers.port(secure ? .tls : dice.pick([.plain, .faulty]))),
            secure: secure)
        task.resume()
        let moment = dice.moment()
        if dice.chance(30) { later(moment) { task.cancel() } }
        let path = dice.pick(["/small", "/medium", "/endless", "/stalled"])
        _ = await attempt(world) {
            try await task.write(Data("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8), timeout: .seconds(1))
        }
        async let other: (Data, isEnd: Bool)? = attempt(world) { try await task.read(timeout: .milliseconds(20)) }
        for _ in 0..<dice.number(0..<4) {
            _ = await attempt(world) { try await task.read(atLeast: 1, atMost: 500, timeout: .milliseconds(20)) }
        }
        _ = await other
        if dice.chance(20) { _ = await attempt(world) { try await task.startSecureConnection() } }
        if dice.chance(30) { _ = await attempt(world) { try await task.closeWrite() } }
        task.cancel()
        _ = await task.ended()
        _ = await attempt(world) { try await task.read() }
    }

    /// Streams that are closed in every order, suspended, released, or never resumed.
    @Sendable private static func streamClose(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let port = dice.pick([Int(world.servers.port(.plain)), 1, 0, 70_000])
        var task: StreamTask? = session.streamTask(host: dice.pick(["127.0.0.1", "localhost", "::", ""]), port: port)
        for _ in 0..<dice.number(0..<6) {
            switch dice.number(0..<6) {
            case 0: task?.resume()
            case 1: task?.suspend()
            case 2: task?.closeRead()
            case 3: _ = task?.description
            case 4: try? await Task.sleep(for: .microseconds(dice.moment()))
            default: task?.cancel()
            }
        }
        if dice.chance(50), let task {
            task.cancel()
            _ = await task.ended()
        }
        task = nil
    }

    @Sendable private static func eventStream(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = world.servers.url(dice.pick(["/events", "/events", "/small", "/empty"]), world.server(&dice))
        let limit = dice.number(0..<25)
        let task = Task {
            var seen = 0
            _ = await attempt(world) {
                for try await _ in session.serverSentEvents(from: url) {
                    seen += 1
                    if seen > limit { break }
                }
            }
        }
        // The stream reconnects for ever.
        try? await Task.sleep(for: .microseconds(5_000 + dice.moment()))
        task.cancel()
        await task.value
    }

    @Sendable private static func ftp(_ world: World, _ dice: inout Dice) async {
        let session = world.session(&dice)
        let url = world.servers.url(dice.pick(["/small.txt", "/small.txt", "/large.bin", "/none", "/"]), .ftp)
        let (uploads, cancels, moment) = (dice.chance(20), dice.chance(30), dice.moment())
        let target = world.servers.url("/up.txt", .ftp)
        let task = Task {
            _ = await attempt(world) {
                if uploads {
                    try await session.upload(Request(url: target, method: .put), from: .data(Data("x".utf8)))
                } else {
                    try await session.data(from: url)
                }
            }
        }
        if cancels {
            try? await Task.sleep(for: .microseconds(moment))
            task.cancel()
        }
        await task.value
    }
}
