private let (policy, strict) = (Policy(), Decisions())
private func bytes(for cause: BodyProviderContext.Cause) async throws -> Data { Data() }
