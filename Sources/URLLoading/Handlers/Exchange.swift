// One request and its answer, whoever gives it: a connection, a file, a handler of the caller's. It has
// one owner at a time; whatever happens, `release` lets go of what is below, at the latest when the
// exchange is dropped.

import FoundationEssentials
import URLLoadingIO
import URLLoadingWire

protocol Exchange: AnyObject, Sendable {
    /// What was answered, before its body. Made anew at each call: `head` and `expectedLength` cost less.
    var response: Response { get }
    var head: HTTPHead? { get }
    var expectedLength: Int64? { get }
    /// The fields after the body; empty before its end.
    var trailers: Headers { get }
    /// Whose it is; `nil` while a handler's answer is on its way.
    var load: LoadContext? { get }
    /// Where a handler wants the load to go on.
    var redirect: Request? { get }
    /// The exchange with a server that it is, or whose answer it hands on; `nil` without one.
    var network: (any NetworkExchange)? { get }
    /// It tells the metrics of itself.
    var hasOwnRecord: Bool { get }
    /// Whose its answer is, and where it came from, as a stored response would keep it. Asked while it is not released.
    /// - Parameter query: what it answers.
    func marks(for query: CacheQuery) -> AnswerMarks

    /// The next piece of the body as far as it is here, decoded; `nil` if more must be read.
    /// - Parameter most: a piece has no more bytes than this; 0 only asks for the end.
    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece?
    /// Waits until something was received; reads no more than so many bytes, and those that come with
    /// them.
    func fill(atMost most: Int) async throws(LoadError)
    /// Reads what is here without a wait; `false` if that is nothing.
    func fillNow() throws(LoadError) -> Bool
    /// A part of the request has not gone out yet.
    var isSending: Bool { get }
    /// Sends some more of it, or waits until that is possible; nothing is read.
    func sendOn() async throws(LoadError)
    /// Nobody reads it for now, or somebody does again.
    func setResting(_ isResting: Bool)
    /// Ends the exchange.
    func release()
}

extension Exchange {
    var redirect: Request? { nil }
    var network: (any NetworkExchange)? { nil }
    var hasOwnRecord: Bool { false }
    func setResting(_ isResting: Bool) {}
    func fillNow() throws(LoadError) -> Bool { false }
    var isSending: Bool { false }
    func sendOn() async throws(LoadError) {}

    /// The next piece of the body; `nil` at its end, when the exchange is released.
    func next() async throws(LoadError) -> Chunk? {
        do throws(LoadError) {
            while true {
                switch try buffered(atMost: .max) {
                case .chunk(let chunk)?: return chunk
                case .end?:
                    release()
                    return nil
                case nil: try await fillHearingCancellation()
                }
            }
        } catch {
            throw failed(error)
        }
    }

    /// Whoever iterates a body may be another task than the one whose cancellation the load hears of.
    private func fillHearingCancellation() async throws(LoadError) {
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
