// SPDX-License-Identifier: Apache-2.0

private let clock = ManualClock()
private let address = url
private let origin = stage.origin
private let server = {
    let server = try! HTTP2TestServer()
    server.route("/*") { _ in .ok("ok") }
    server.start()
    return server
}()
private let priorKnowledge = {
    var configuration = Configuration.ephemeral
    configuration.connections.httpVersions = .http2PriorKnowledge
    return Session(configuration)
}()
@discardableResult private func use(_ url: URL) async throws -> String {
    String(decoding: try await priorKnowledge.data(from: url).0, as: UTF8.self)
}
