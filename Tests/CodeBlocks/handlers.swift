// SPDX-License-Identifier: Apache-2.0

private struct Tokens {
    func current() async throws -> String { "" }
    func refreshed() async throws -> String { "" }
}
