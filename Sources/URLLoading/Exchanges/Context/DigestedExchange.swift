// SPDX-License-Identifier: Apache-2.0

// An exchange whose body must have the digest that the request expects. Its end is delivered only if the body has it.

import URLLoadingWire

extension LoadContext {
    /// Removes the stored response to a request, whose body is not the expected one.
    func forgetStored(_ request: Request) {
        guard let cache = core.cache, case .success(let destination) = request.destination else { return }
        var query = CacheQuery(request)
        query.checks = cache.checks
        cache.cache(for: query, self).storage.remove(destination.cacheKey)
    }
}

final class DigestedExchange: Exchange, @unchecked Sendable {
    // Unchecked: an exchange has one owner at a time (`Exchange`).
    private let inner: any Exchange
    private let check: DigestCheck
    private let forget: @Sendable () -> Void
    private var hasEnded = false

    /// - Parameter forget: removes the stored response that the body came from or went to.
    /// - Throws: ``LoadError/Reason/unacceptableStatus`` unless the response is a success.
    init(_ inner: any Exchange, _ digest: BodyDigest, forget: @escaping @Sendable () -> Void) throws(LoadError) {
        do throws(LoadError) { try inner.response.requireSuccess() } catch { throw inner.failed(error) }
        (self.inner, self.forget) = (inner, forget)
        check = DigestCheck([.init(digest: digest)])
    }

    var load: LoadContext? { inner.load }
    var head: HTTPHead? { inner.head }
    var response: Response { inner.response }
    var expectedLength: Int64? { inner.expectedLength }
    var trailers: Headers { inner.trailers }
    var network: (any NetworkExchange)? { inner.network }
    var hasOwnRecord: Bool { inner.hasOwnRecord }
    func marks(for query: CacheQuery) -> AnswerMarks { inner.marks(for: query) }

    func buffered(atMost most: Int) throws(LoadError) -> BodyPiece? {
        guard !hasEnded else { return .end }
        let piece = try inner.buffered(atMost: most)
        if case .end? = piece { hasEnded = true }
        do throws(LoadError) { try check.process(piece) } catch {
            forget()
            throw error
        }
        return piece
    }

    func fill(atMost most: Int) async throws(LoadError) { try await inner.fill(atMost: most) }
    func fillNow() throws(LoadError) -> Bool { try inner.fillNow() }
    var isSending: Bool { inner.isSending }
    func continueSending() async throws(LoadError) { try await inner.continueSending() }
    func setUnread(_ isUnread: Bool) { inner.setUnread(isUnread) }
    func release() { inner.release() }
}
