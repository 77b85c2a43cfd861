// A response in which each part takes the place of the one before, as cameras send it (multipart/x-mixed-replace): after the
// response that says so the delegate gets one for each part, with the part's content behind it (checklist 51).

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// The parts, taken out of a body as it comes. An object, so that tasks without parts are no larger for it.
final class MixedParts: @unchecked Sendable {
    enum Event: Sendable {
        case part(Response)
        case data(Data)
    }
    // Unchecked: what follows is touched under the lock of `TaskBridge` alone.
    private let whole: Response
    private var reader: MultipartReader
    /// What was not taken yet: at most the fields of a part, or what may be the beginning of a delimiter.
    private var rest: [UInt8] = []
    private(set) var hasBegun = false

    /// `nil` for any other response, and for one that does not say how its parts are told apart: its body comes as it is.
    init?(_ response: Response) {
        guard response.mediaType?.essence == "multipart/x-mixed-replace",
            let type = response.http?.headers[.contentType],
            let boundary = try? MultipartBoundary(contentType: type)
        else { return nil }
        whole = response
        var limits = MultipartLimits()
        limits.partCount = .max
        reader = MultipartReader(boundary: boundary, limits: limits)
    }

    func receive(_ chunk: Chunk) -> Result<[Event], LoadError> {
        rest.append(contentsOf: [UInt8](chunk))
        let violation = take()
        if let violation { return .failure(LoadError(violation, .receiving)) }
        defer { events = [] }
        return .success(events)
    }

    private var events: [Event] = []

    private func take() -> WireViolation? {
        var start = 0
        defer { rest.removeFirst(start) }
        return rest.withUnsafeBytes { all -> WireViolation? in
            while true {
                var consumed = 0
                let found: MultipartEvent?
                let input = UnsafeRawBufferPointer(rebasing: all[start...])
                do throws(WireViolation) { found = try reader.next(input, consumed: &consumed) } catch { return error }
                start += consumed
                switch found {
                case .part(let headers)?:
                    hasBegun = true
                    events.append(.part(ResponsePart.response(with: headers, of: whole)))
                case .data(let range)?: events.append(.data(Data(input[range])))
                case .partEnd?, .end?: continue
                case nil: return nil
                }
            }
        }
    }
}

extension TaskBridge {
    /// One part after the other: the delegate is told of the next when all of the one before was delivered.
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
            await untilHeard()
            let response = URLResponse.make(part, to: nil)
            state.withLock { state in
                state.response = response
                state.mailbox.put(response, isHeard: true)
            }
            schedule()
        case .data(let data):
            if !state.withLock({ $0.mailbox.put(data) }) { await untilHeard() }
        }
    }
}
