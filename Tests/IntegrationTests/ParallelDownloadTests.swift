// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTestSupport

/// Files in several parts at once, with nginx and Apache.
@Suite(.enabled(if: Servers.areHere, Servers.areMissing), .timeLimit(.minutes(4)))
struct ParallelDownloadTests {
    @Test(
        "A file in parts has the same bytes, over HTTP/1.1 and HTTP/2",
        arguments: ["NGINX", "APACHE", "NGINX_H2"], [1, 4, 8])
    func sameBytes(_ server: String, _ count: Int) async throws {
        let folder = try TemporaryFolder()
        var configuration = Servers.configuration
        configuration.connections.maximumPerHost = 8
        try await withSession(configuration) { session in
            var options = DownloadOptions(destination: folder.url("file"))
            options.parallelRanges = ParallelRanges(count, minimumPartSize: 64 << 10)
            options.resumeFile = folder.url("token")
            var request = Request(url: try Servers.url(server, "/1m.txt"))
            request.headers[.acceptEncoding] = "identity"
            let task = session.downloadTask(request, options: options)
            task.resume()
            #expect(try await task.value.size == 1_000_000)
            #expect(try Data(folder.bytes("file")) == Servers.numbers(125_000))
            #expect(folder.names == ["file"])
        }
    }
}
