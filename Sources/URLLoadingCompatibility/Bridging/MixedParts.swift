// SPDX-License-Identifier: Apache-2.0

// A response of type multipart/x-mixed-replace, as cameras send it: each part replaces the previous one. After the
// response itself the delegate receives one response for each part, followed by the part's content.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// Splits a body into parts as it arrives. A class, so that tasks without parts do not grow by its size.
final class MixedParts: Sendable {
    enum Event: Sendable {
        case part(Response)
        case data(Data)
    }
    fileprivate struct State: Sendable {
        var reader: MultipartReader
        /// Bytes that were not consumed yet: at most the fields of a part, or the possible beginning of a delimiter.
        var rest: [UInt8] = []
        var hasBegun = false
    }
    private let whole: Response
    private let state: Lock<State>

    /// Fails for any other media type and without a boundary parameter: such a body is delivered unchanged.
    init?(_ response: Response) {
        guard response.mediaType?.essence == "multipart/x-mixed-replace",
            let type = response.http?.headers[.contentType],
            let boundary = try? MultipartBoundary(contentType: type)
        else { return nil }
        whole = response
        var limits = MultipartLimits()
        limits.partCount = .max
        state = Lock(State(reader: MultipartReader(boundary: boundary, limits: limits)))
    }

    /// Whether a part was found.
    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    func receive(_ chunk: Chunk) -> Result<[Event], LoadError> {
        state.withLock { state in
            state.rest.append(contentsOf: [UInt8](chunk))
            do throws(WireViolation) { return .success(try state.take(of: whole)) } catch {
                return .failure(LoadError(error, .receiving))
            }
        }
    }
}

extension MixedParts.State {
    /// Returns as many parts and pieces of parts as have arrived.
    fileprivate mutating func take(of whole: Response) throws(WireViolation) -> [MixedParts.Event] {
        var events: [MixedParts.Event] = []
        var start = 0
        // Moved out of the state, so that the reader can be mutated while it reads its input.
        var all: [UInt8] = []
        swap(&all, &rest)
        defer {
            all.removeFirst(start)
            swap(&all, &rest)
        }
        try all.withUnsafeBufferPointer { (all) throws(WireViolation) in
            while true {
                var consumed = 0
                let input = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: all[start...]))
                let found = try reader.next(input, consumed: &consumed)
                start += consumed
                switch found {
                case .part(let headers)?:
                    hasBegun = true
                    events.append(.part(ResponsePart.response(with: headers, of: whole)))
                case .data(let range)?: events.append(.data(Data(input[range])))
                case .partEnd?, .end?: continue
                case nil: return
                }
            }
        }
        return events
    }
}

extension TaskBridge {
    /// Delivers the parts in order: the delegate is notified of a part after all of the previous one was delivered.
    func receiveParts(_ chunk: Chunk) async {
        switch state.withLock({ state -> Result<[MixedParts.Event], LoadError>? in
            if case .parts(let parts)? = state.active?.body { parts.receive(chunk) } else { nil }
        }) {
        case .success(let events)?:
            for event in events { await receive(event) }
        case .failure(let error)?: cancel(error)
        case nil: break
        }
    }

    private func receive(_ event: MixedParts.Event) async {
        switch event {
        case .part(let part):
            await untilDelivered()
            let response = URLResponse.make(part, to: nil)
            state.withLock { state in
                state.response = response
                state.mailbox.put(response, isObserved: true)
            }
            schedule()
        case .data(let data):
            if !state.withLock({ $0.mailbox.put(data) }) { await untilDelivered() }
        }
    }
}
