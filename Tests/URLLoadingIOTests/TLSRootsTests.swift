// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoadingTesting

@testable import URLLoadingIO

@Suite(.timeLimit(.minutes(4)))
struct TLSRootsTests {
    private func locate(file: String?, directory: String?, hashed: Bool, exists: Bool = true) -> SystemRoots {
        SystemRoots.locate(
            environmentFile: file, environmentDirectory: directory, defaultFile: "cert.pem", defaultDirectory: "certs",
            isHashed: { _ in hashed }, exists: { _ in exists })
    }

    @Test func `A hashed directory replaces the bundle`() {
        #expect(locate(file: nil, directory: nil, hashed: true) == SystemRoots(file: nil, directory: "certs"))
        #expect(locate(file: nil, directory: nil, hashed: false) == SystemRoots(file: "cert.pem", directory: nil))
    }

    @Test func `SSL_CERT_FILE replaces the default file, and SSL_CERT_DIR the default directory`() {
        #expect(locate(file: "mine", directory: nil, hashed: true) == SystemRoots(file: "mine", directory: "certs"))
        #expect(locate(file: "mine", directory: nil, hashed: false) == SystemRoots(file: "mine", directory: nil))
        for hashed in [false, true] {
            let added = locate(file: nil, directory: "a:b", hashed: hashed)
            #expect(added == SystemRoots(file: "cert.pem", directory: "a:b"))
            let own = locate(file: "mine", directory: "a:b", hashed: hashed)
            #expect(own == SystemRoots(file: "mine", directory: "a:b"))
            let alone = locate(file: nil, directory: "a:b", hashed: hashed, exists: false)
            #expect(alone == SystemRoots(file: nil, directory: "a:b"))
        }
    }

    @Test func `The error for unreadable roots names the file`() {
        var configuration = TLSConfiguration()
        configuration.roots = .file("no/such/file.pem")
        let missing = #expect(throws: TLSFailure.self) { try TLSContext(configuration) }
        #expect(missing?.kind == .rootsUnavailable("no/such/file.pem"))
        for nonsense in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            configuration.roots = .pem(Array(nonsense.utf8))
            let error = #expect(throws: TLSFailure.self) { try TLSContext(configuration) }
            #expect(error?.kind == .rootsUnavailable("PEM"))
        }
    }

    @Test func `Roots of a file replace or extend the system's`() async throws {
        let rig = try TLSRig()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString + ".pem")
        try Data(rig.authority.pem).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        var configuration = TLSConfiguration()
        for roots in [TLSConfiguration.Roots.file(file.path), .systemAnd(rig.authority.pem)] {
            configuration.roots = roots
            let pair = try await rig.connect(with: TLSContext(configuration))
            #expect(pair.client.negotiated?.isResumed == false)
        }
        configuration.roots = .system
        let error = await #expect(throws: IOFailure.self) { _ = try await rig.connect(with: TLSContext(configuration)) }
        #expect(tlsKind(error) == .untrustedIssuer)
    }
}
