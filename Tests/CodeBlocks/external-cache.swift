// SPDX-License-Identifier: Apache-2.0

/// The store of the example, which needs a server.
private struct RedisResponseStore: ResponseStore {
    init(host: String) {}
    func value(for key: String) async throws -> ResponseStoreValue? { nil }
    func store(_ value: ResponseStoreValue, for key: String, lifetime: Duration) async throws {}
    func removeValue(for key: String) async throws {}
}
