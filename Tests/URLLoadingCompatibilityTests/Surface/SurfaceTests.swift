// That a program finds here what it found in FoundationNetworking: the compiler is asked what both
// modules declare.

import Testing

@Suite struct SurfaceTests {
    @Test("every public declaration of FoundationNetworking is here, with the same signature")
    func declarations() async throws {
        let theirs = try await PublicSurface(of: "FoundationNetworking")
        let ours = try await PublicSurface(of: "URLLoadingCompatibility")
        #expect(theirs.declarations.count > 500)
        let missing = theirs.declarations.keys.filter { ours.declarations[$0] == nil }.sorted()
        #expect(missing.isEmpty, "missing: \(missing.joined(separator: "\n"))")
        var different: [String] = []
        for (path, signatures) in theirs.declarations {
            guard let same = ours.declarations[path] else { continue }
            let seen = Set(same.map(Self.asSeen))
            different += signatures.map(Self.asSeen).filter {
                !seen.contains($0) && !Self.onlyTheirSetter(path, $0, seen)
            }
        }
        #expect(different.isEmpty, "different: \(different.sorted().joined(separator: "\n"))")
    }

    @Test("every type conforms to and inherits from the same")
    func conformances() async throws {
        let theirs = try await PublicSurface(of: "FoundationNetworking")
        let ours = try await PublicSurface(of: "URLLoadingCompatibility")
        var missing: [String] = []
        for (type, all) in theirs.conformances {
            // What every type does, and the compiler says of some only.
            let lacking = all.subtracting(ours.conformances[type] ?? []).subtracting([
                "conformsTo Swift.Copyable", "conformsTo Swift.Escapable",
            ])
            missing += lacking.map { "\(type) \($0)" }
        }
        #expect(missing.isEmpty, "missing: \(missing.sorted().joined(separator: "\n"))")
    }

    /// Stored or computed is nobody's business.
    private static func asSeen(_ declaration: String) -> String {
        let declaration = declaration.replacing("@discardableResult ", with: "")
        if declaration.hasSuffix(" { get set }") { return String(declaration.dropLast(" { get set }".count)) }
        if declaration.contains("let ") {
            return declaration.replacing("let ", with: "var ", maxReplacements: 1) + " { get }"
        }
        return declaration
    }

    /// Setters that are theirs alone: the compiler's list tells of internal ones as of public ones.
    private static func onlyTheirSetter(_ path: String, _ declaration: String, _ ours: Set<String>) -> Bool {
        let internalSetters = [
            "NSURLRequest.httpMethod", "URLSessionTask.currentRequest", "URLSessionTask.response",
            "URLSessionTask.state",
            "URLSessionTask.countOfBytesReceived", "URLSessionTask.countOfBytesSent",
            "URLSessionTask.countOfBytesExpectedToSend",
            "URLSessionTask.countOfBytesExpectedToReceive", "URLSessionWebSocketTask.error",
        ]
        return internalSetters.contains { path.hasPrefix($0 + " ") } && ours.contains(declaration + " { get }")
    }
}
