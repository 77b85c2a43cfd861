// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading
import URLLoadingTesting

/// One kind of abuse. Its random choices come from the dice alone, so a seed repeats them; the timing it does not.
struct Operation: Sendable {
    let name: String
    /// How often it is chosen, compared with the others.
    let weight: Int
    let run: @Sendable (World, inout Dice) async -> Void

    init(_ name: String, _ weight: Int, _ run: @escaping @Sendable (World, inout Dice) async -> Void) {
        (self.name, self.weight, self.run) = (name, weight, run)
    }

    static let all: [Operation] =
        ModernOperations.all + ConversationOperations.all + ClassicOperations.all
        + ClassicOddities.all + ProcessOperations.all
    private static let total = all.reduce(0) { $0 + $1.weight }

    static func chosen(_ dice: inout Dice) -> Operation {
        var place = dice.number(0..<total)
        for operation in all {
            place -= operation.weight
            if place < 0 { return operation }
        }
        return all[0]
    }
}

/// Random choices of one operation.
struct Dice: Sendable {
    let seed: UInt64
    private var random: SeededGenerator

    init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
    }

    mutating func next() -> UInt64 { random.next() }
    mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }
    mutating func chance(_ percent: Int) -> Bool { number(0..<100) < percent }
    mutating func pick<T>(_ choices: [T]) -> T { choices[number(0..<choices.count)] }
    /// A moment within a load on the loopback, in microseconds: mostly early.
    mutating func moment() -> Int {
        switch number(0..<4) {
        case 0: 0
        case 1: number(0..<200)
        case 2: number(0..<2_000)
        default: number(0..<8_000)
        }
    }
    /// The duration of a blocking callback in microseconds; mostly none.
    mutating func block() -> Int { chance(15) ? number(0..<2_000) : 0 }
}

/// The error that the program throws from its own closures.
struct Thrown: Error {}

/// Blocks the calling thread.
func block(_ microseconds: Int) { if microseconds > 0 { usleep(UInt32(microseconds)) } }

/// Runs a closure on another thread after some time.
func later(_ microseconds: Int, _ run: @escaping @Sendable () -> Void) {
    DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds), execute: run)
}

/// Calls a throwing closure and counts its error.
func attempt<R>(_ world: World, _ call: () async throws -> R) async -> R? {
    do {
        let result = try await call()
        world.ledger.note(nil)
        return result
    } catch {
        world.ledger.note(error)
        return nil
    }
}

extension Ledger {
    /// The name of an error that the library may throw. One that is neither the library's nor the program's own is a
    /// failure.
    static func name(_ error: any Error) -> String {
        switch error {
        case let error as LoadError: "LoadError.\(error.reason.name)"
        case let error as URLError: "URLError \(error.code.rawValue)"
        case is Thrown: "thrown"
        case is CancellationError: "CancellationError"
        default: "unnamed: \(type(of: error)) \(error)"
        }
    }
}
