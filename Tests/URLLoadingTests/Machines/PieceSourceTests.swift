// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoadingIO
import URLLoadingTestSupport
import URLLoadingWire

@testable import URLLoading

/// Asking a caller's sequence for its pieces.
@Suite(.timeLimit(.minutes(1)))
struct PieceSourceTests {
    private static func text(_ piece: PieceSource.Piece?) throws -> String? {
        guard let chunk = try piece?.get()?.chunk else { return nil }
        return String(decoding: [UInt8](chunk), as: UTF8.self)
    }

    @Test func `pieces at hand are there when the call returns, and wake no sender`() throws {
        let wakes = Watched(0)
        let source = PieceSource(AnyChunkIterator(Pieces(["ab", "", "cd"])), LeakCount()) { wakes.add() }
        for text in ["ab", "", "cd"] { #expect(try Self.text(source.take()) == text) }
        let end = try #require(source.take())
        #expect(try end.get() == nil)
        #expect(wakes.value == 0)
    }

    @Test func `a sequence that suspends wakes the sender once for each piece`() async throws {
        let wakes = Watched(0)
        let (sequence, ask) = AsyncStream<[UInt8]>.makeStream()
        let source = PieceSource(AnyChunkIterator(sequence), LeakCount()) { wakes.add() }
        for round in 1...3 {
            #expect(source.take() == nil)
            #expect(source.take() == nil)
            ask.yield(Array("\(round)".utf8))
            try await wakes.wait { $0 >= round }
            #expect(try Self.text(source.take()) == "\(round)")
        }
        #expect(wakes.value == 3)
        source.abandon()
    }

    @Test func `an error arrives as a piece`() throws {
        struct Failing: AsyncSequence, AsyncIteratorProtocol, Sendable {
            func makeAsyncIterator() -> Failing { self }
            mutating func next() async throws -> [UInt8]? { throw CancellationError() }
        }
        let source = PieceSource(AnyChunkIterator(Failing()), LeakCount()) {}
        let piece = try #require(source.take())
        #expect(throws: CancellationError.self) { try piece.get() }
    }

    @Test func `an abandoned sequence is cancelled, counted until it ends, and wakes no sender`() async throws {
        let (wakes, leaked) = (Watched(0), LeakCount())
        let released = AsyncStream<Void>.makeStream()
        struct Deaf: AsyncSequence, AsyncIteratorProtocol, Sendable {
            let release: AsyncStream<Void>
            func makeAsyncIterator() -> Deaf { self }
            mutating func next() async -> [UInt8]? {
                // A task of its own, which the cancellation does not reach.
                await Task { [release] in for await _ in release { break } }.value
                return Task.isCancelled ? Array("cancelled".utf8) : nil
            }
        }
        let source = PieceSource(AnyChunkIterator(Deaf(release: released.stream)), leaked) { wakes.add() }
        #expect(source.take() == nil)
        source.abandon()
        source.abandon()
        #expect(leaked.value == 1 && source.take() == nil)
        released.continuation.yield()
        try await eventuallyNoLeaks(leaked.value)
        #expect(wakes.value == 0 && source.take() == nil)
    }

    @Test func `a sequence sees the task-local values of the sender's task`() throws {
        struct Local: AsyncSequence, AsyncIteratorProtocol, Sendable {
            @TaskLocal static var name = "none"
            func makeAsyncIterator() -> Local { self }
            mutating func next() async -> [UInt8]? { Array(Local.name.utf8) }
        }
        let source = PieceSource(AnyChunkIterator(Local()), LeakCount()) {}
        let text = try Local.$name.withValue("caller") { try Self.text(source.take()) }
        #expect(text == "caller")
    }
}
