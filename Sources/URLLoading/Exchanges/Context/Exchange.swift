// SPDX-License-Identifier: Apache-2.0

// A request and its response, from any source: a connection, a file, a custom handler. An exchange has one owner at a
// time. `release` frees its resources, and runs at the latest when the exchange is deallocated.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

protocol Exchange: AnyObject, Sendable {
    /// The response without its body. Created anew at each call: `head` and `expectedLength` cost less.
    var response: Response { get }
    var head: HTTPHead? { get }
    /// The status of `head`, without a copy of its fields.
    var status: Status? { get }
    var expectedLength: Int64? { get }
    /// The trailer fields; empty before the end of the body.
    var trailers: Headers { get }
    /// The load of the exchange; `nil` for a custom handler's response that no load has taken yet.
    var load: LoadContext? { get }
    /// The request to which a handler redirects the load.
    var redirect: Request? { get }
    /// The underlying exchange with a server, if this is one or forwards the response of one; `nil` without one.
    var network: (any NetworkExchange)? { get }
    /// True if the exchange reports its own metrics.
    var hasOwnRecord: Bool { get }
    /// Returns the owner and the source of the response, as a stored response would keep them. Call it before
    /// `release`.
    /// - Parameter query: the request in the terms of the cache.
    func marks(for query: CacheQuery) -> AnswerMarks

    /// Returns the next piece of the decoded body that was already received; `nil` if more must be read.
    /// - Parameter most: the maximum size of the piece; 0 only checks for the end.
    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece?
    /// Waits until bytes were received. Reads no more than `most` bytes, except for those that arrive together with
    /// them.
    func fill(atMost most: Int) async throws(LoadError)
    /// Reads what is available without a wait; returns `false` if that is nothing.
    func fillNow() throws(LoadError) -> Bool
    /// True while a part of the request is not sent.
    var isSending: Bool { get }
    /// Sends more of the request, or waits until that is possible; reads nothing.
    func continueSending() async throws(LoadError)
    /// Notes whether the exchange has no reader for now.
    func setUnread(_ isUnread: Bool)
    /// Hands over the connection, or the stream; nil if there is none, or if the exchange was already released.
    func surrender() -> SurrenderedConnection?
    /// Ends the exchange and frees its resources.
    func release()
}

extension Exchange {
    var status: Status? { head?.status }
    var redirect: Request? { nil }
    var network: (any NetworkExchange)? { nil }
    var hasOwnRecord: Bool { false }
    func setUnread(_ isUnread: Bool) {}
    func surrender() -> SurrenderedConnection? { nil }
    func fillNow() throws(LoadError) -> Bool { false }
    var isSending: Bool { false }
    func continueSending() async throws(LoadError) {}

    /// Returns the next piece of the body; `nil` at its end, when the exchange is released.
    func next() async throws(LoadError) -> Chunk? {
        do throws(LoadError) {
            while true {
                switch try buffered(atMost: .max) {
                case .chunk(let chunk)?: return chunk
                case .end?:
                    release()
                    return nil
                case nil: try await fillWithCancellation()
                }
            }
        } catch {
            throw failed(error)
        }
    }

    /// Fills, and stops the load if the calling task is cancelled: a body may be iterated in another task than the one
    /// whose cancellation the load observes.
    private func fillWithCancellation() async throws(LoadError) {
        let filled: Result<Void, LoadError> = await withTaskCancellationHandler {
            do throws(LoadError) { return .success(try await fill(atMost: .max)) } catch { return .failure(error) }
        } onCancel: {
            load?.stop(.cancelled)
        }
        try filled.get()
    }

    func failed(_ error: LoadError) -> LoadError {
        release()
        return error.at(response.url)
    }
}
