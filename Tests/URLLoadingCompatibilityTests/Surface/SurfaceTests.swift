// SPDX-License-Identifier: Apache-2.0

// Compares the public API with that of FoundationNetworking, as the compiler reports both.

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

    @Test("every type has the same conformances and superclasses")
    func conformances() async throws {
        let theirs = try await PublicSurface(of: "FoundationNetworking")
        let ours = try await PublicSurface(of: "URLLoadingCompatibility")
        var missing: [String] = []
        for (type, all) in theirs.conformances {
            // Conformances of every type, which the compiler lists for some types only.
            let lacking = all.subtracting(ours.conformances[type] ?? []).subtracting([
                "conformsTo Swift.Copyable", "conformsTo Swift.Escapable",
            ])
            missing += lacking.map { "\(type) \($0)" }
        }
        #expect(missing.isEmpty, "missing: \(missing.sorted().joined(separator: "\n"))")
    }

    /// Removes the difference between stored and computed properties, which programs cannot observe.
    private static func asSeen(_ declaration: String) -> String {
        let declaration = declaration.replacing("@discardableResult ", with: "")
        if declaration.hasSuffix(" { get set }") { return String(declaration.dropLast(" { get set }".count)) }
        if declaration.contains("let ") {
            return declaration.replacing("let ", with: "var ", maxReplacements: 1) + " { get }"
        }
        return declaration
    }

    /// Returns whether only FoundationNetworking lists a setter: its graph contains internal setters as well.
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
