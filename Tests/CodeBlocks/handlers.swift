private struct Tokens {
    func current() async throws -> String { "" }
    func refreshed() async throws -> String { "" }
}
