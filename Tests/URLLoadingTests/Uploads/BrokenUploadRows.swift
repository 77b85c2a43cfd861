// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// A server that breaks off an upload over TLS, by closing or by a reset: the load reports a lost connection with every
/// release of OpenSSL, so that a retry or a resumption follows.
@Suite(.timeLimit(.minutes(4)))
struct BrokenUploadRows {
    typealias Version = Configuration.TLS.Version

    static let moments: [HTTPTestServer.Fault.Point] = [
        .requestHead, .requestBody(after: 1), .requestBody(after: 16_384), .requestBody(after: 300_000),
        .requestBody(after: 1_999_999),
    ]
    static let breaks: [(HTTPTestServer.Fault.Point, HTTPTestServer.Fault.Effect)] = moments.flatMap { moment in
        [.close, .cut, .reset].map { (moment, $0) }
    }
    static let content = Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    @Test("a PUT that is broken off is retried", arguments: [Version.tls12, .tls13], breaks)
    func repeated(_ version: Version, _ fault: (point: HTTPTestServer.Fault.Point, effect: HTTPTestServer.Fault.Effect))
        async throws
    {
        try await withSecureOrigin(server: { $0.maximumVersion = version }) { origin, configuration in
            origin.route("/") { .ok("\($0.bodyCount) bytes") }
            origin.inject(.init(fault.point, fault.effect), onConnection: 1)
            origin.inject(.init(fault.point, fault.effect), onConnection: 2)
            let recorder = EventRecorder()
            var configuration = configuration
            var policy = RetryPolicy()
            policy.backoff = .constant(.zero)
            configuration.retries.policy = policy
            configuration.observers = [recorder]
            try await withSession(configuration) { session in
                try await session.expect(
                    Request(url: origin.url(), method: .put, body: .data(Self.content)), "2000000 bytes")
            }
            let causes = recorder.loads.flatMap(\.events).compactMap { event -> LoadError.Reason? in
                guard case .retrying(let retry) = event, case .failed(let error) = retry.cause else { return nil }
                return error.reason
            }
            // If the end is read before a write fails, the response counts as truncated.
            #expect(causes.count == 2 && Set(causes).isSubset(of: [.connectionLost, .truncated]), "\(causes)")
        }
    }

    @Test(
        "without a retry policy a PUT that is broken off is not retried, and the error says why",
        arguments: [Version.tls12, .tls13],
        breaks)
    func told(_ version: Version, _ fault: (point: HTTPTestServer.Fault.Point, effect: HTTPTestServer.Fault.Effect))
        async throws
    {
        try await withSecureOrigin(server: { $0.maximumVersion = version }) { origin, configuration in
            origin.route("/", faults: [.init(fault.point, fault.effect)]) { _ in .ok("") }
            var configuration = configuration
            configuration.retries.policy = .never
            try await withSession(configuration) { session in
                do throws(LoadError) {
                    let (_, response) = try await session.data(
                        for: Request(url: origin.url(), method: .put, body: .data(Self.content)))
                    Issue.record("no error but \(response)")
                } catch {
                    #expect([.connectionLost, .truncated].contains(error.reason) && error.party == .remote, "\(error)")
                }
            }
            #expect(origin.requests.count <= 1)
        }
    }

    static let cuts: [(Int64, HTTPTestServer.Fault.Effect)] = [1, 4095, 65_536, 1_999_999].flatMap { offset in
        [.close, .cut, .reset].map { (offset, $0) }
    }

    @Test("a resumable upload that is broken off resumes at its offset", arguments: [Version.tls12, .tls13], cuts)
    func resumed(_ version: Version, _ cut: (offset: Int64, effect: HTTPTestServer.Fault.Effect)) async throws {
        try await withSecureOrigin(server: { $0.maximumVersion = version }) { origin, configuration in
            let server = ResumableUploadServer()
            server.serve("/files", on: origin)
            server.inject(.init(.received(cut.offset), cut.effect))
            try await withSession(configuration) { session in
                let (data, _) = try await session.uploadResumably(
                    Request(url: origin.url("/files"), method: .post), from: .data(Self.content),
                    options: ResumableUploadRows.eager)
                #expect(String(decoding: data, as: UTF8.self) == "2000000 bytes")
            }
            let path = try #require(server.uploads.first?.path)
            #expect(server.requests == ["POST /files", "HEAD \(path)", "PATCH \(path)"])
            ResumableUploadRows.expectWhole(server, Self.content)
        }
    }
}
