// SPDX-License-Identifier: Apache-2.0

extension LoadError.Reason {
    /// A ``RequestRate`` would have held the request back for longer than it may.
    public static let rateLimited = Self("rateLimited", -1008)
    /// A ``CircuitBreaker`` makes no request to the server, which failed several times in a row.
    public static let circuitOpen = Self("circuitOpen", -1008)
}
