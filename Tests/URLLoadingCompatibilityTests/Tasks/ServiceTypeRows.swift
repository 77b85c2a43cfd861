// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing
import URLLoadingCompatibility
import URLLoadingTesting

/// `networkServiceType`: the marks of a task's sockets.
@Suite(.timeLimit(.minutes(4)))
struct ServiceTypeRows {
    /// Returns the code point (DSCP) of this side of the connection between two local ports.
    private static func mark(_ local: Int, _ remote: Int) -> Int? {
        func port(_ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32) -> Int? {
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask($0, &length) }
            }
            return result == 0 ? Int(UInt16(bigEndian: address.sin_port)) : nil
        }
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for descriptor in open.compactMap({ Int32($0) })
        where port({ getsockname(descriptor, $0, $1) }) == local && port({ getpeername(descriptor, $0, $1) }) == remote
        {
            var octet: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            // IP_TOS
            guard getsockopt(descriptor, Int32(IPPROTO_IP), 1, &octet, &size) == 0 else { return nil }
            return Int(octet >> 2)
        }
        return nil
    }

    @Test(
        "the service type of a configuration or request marks its connection, which is shared only with the same type")
    func marks() async throws {
        try await withHTTPTestServer { origin in
            origin.route("/") { _ in .ok("in") }
            let recorder = Recorder()
            let marks = Box<Int>()
            let reused = Box<Bool>()
            recorder.onMetrics = { metrics in
                guard let last = metrics.transactionMetrics.last, let local = last.localPort.flatMap({ Int($0) }),
                    let remote = last.remotePort.flatMap({ Int($0) })
                else { return }
                marks.add(Self.mark(local, remote) ?? -1)
                reused.add(last.isReusedConnection)
            }
            let session = recorder.session { $0.networkServiceType = .background }
            let types: [URLRequest.NetworkServiceType] = [
                .default, .voice, .video, .voip, .networkServiceTypeCallSignaling, .responsiveData, .avStreaming,
                .responsiveAV, .background,
            ]
            for (number, type) in types.enumerated() {
                var request = URLRequest(url: origin.url())
                request.networkServiceType = type
                session.dataTask(with: request).resume()
                await recorder.completed.reaches(number + 1)
            }
            #expect(marks.all == [1, 46, 34, 40, 40, 18, 26, 32, 1])
            #expect(reused.all == [false, false, false, false, true, false, false, false, true])
            await recorder.expectOrder(session)
        }
    }
}
