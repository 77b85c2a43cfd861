// SPDX-License-Identifier: Apache-2.0

// `--limit-rate`: computes pauses that keep the average rate of a transfer below the limit.

import FoundationEssentials
import URLLoading

struct Throttle {
    let bytesPerSecond: Int64
    private let start = ContinuousClock.now
    private var bytes: Int64 = 0

    init(bytesPerSecond: Int64) { self.bytesPerSecond = bytesPerSecond }

    /// Counts transferred bytes.
    /// - Returns: the pause before the next bytes; `nil` for none.
    mutating func pause(after count: Int) -> Duration? {
        bytes += Int64(count)
        let due = Duration.seconds(Double(bytes) / Double(bytesPerSecond))
        let pause = due - (ContinuousClock.now - start)
        return pause > .milliseconds(1) ? pause : nil
    }
}

/// A request body that is read at the limited rate.
struct PacedInput: AsyncSequence, Sendable {
    enum Source: Sendable {
        case data(Data)
        case file(String)
    }
    let source: Source
    let bytesPerSecond: Int64

    /// Limits the rate of the body of `-d` and `-T`. Forms are sent at full rate.
    static func pace(_ request: inout Request, _ options: Options, _ limit: Int64) async throws {
        guard request.body != nil, options.request.formFields.isEmpty else { return }
        let contentType = request.body?.contentType
        if let path = options.request.upload, path != "-" {
            let length = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
            guard let length, length > 0 else { return }
            request.body = .stream(length: Int64(length)) { Self(source: .file(path), bytesPerSecond: limit) }
        } else if options.request.upload == nil, let data = try await request.body?.collect(upTo: 1 << 30) {
            request.body = .stream(length: Int64(data.count)) { Self(source: .data(data), bytesPerSecond: limit) }
        }
        request.body?.contentType = contentType
    }

    func makeAsyncIterator() -> Iterator { Iterator(input: self, throttle: Throttle(bytesPerSecond: bytesPerSecond)) }

    struct Iterator: AsyncIteratorProtocol {
        let input: PacedInput
        var throttle: Throttle
        private var file: InputFile?
        private var rest: Data?

        init(input: PacedInput, throttle: Throttle) {
            self.input = input
            self.throttle = throttle
        }

        mutating func next() async throws -> Data? {
            // Pieces of a tenth of a second.
            let size = Int((input.bytesPerSecond / 10).clamped(to: 1...64 << 10))
            guard let piece = try piece(size), !piece.isEmpty else { return nil }
            if let pause = throttle.pause(after: piece.count) { try await Task.sleep(for: pause) }
            return piece
        }

        private mutating func piece(_ size: Int) throws -> Data? {
            if rest?.isEmpty ?? true {
                switch input.source {
                case .data(let data): rest = rest == nil ? data : nil
                case .file(let path):
                    let open = try file ?? InputFile(path)
                    file = open
                    rest = try open.next().map { Data($0) }
                }
            }
            let piece = rest?.prefix(size)
            rest = rest?.dropFirst(size)
            return piece.map { Data($0) }
        }
    }
}

extension Int64 {
    fileprivate func clamped(to range: ClosedRange<Int64>) -> Int64 {
        self < range.lowerBound ? range.lowerBound : self > range.upperBound ? range.upperBound : self
    }
}
