// SPDX-License-Identifier: Apache-2.0

// Puts a network between the integration tests and their servers: `script/test --far`.
//
//   FarProgram SEED   reads lines "NAME URL" until an empty one, and writes "NAME URL-OF-A-RELAY" for each and an empty
//                     line; then relays until its input ends.

import FoundationEssentials
import Glibc
import URLLoadingTesting

@main
enum FarProgram {
    /// 3 ms and up to 3 ms more each way, and segments that end anywhere.
    private static func conditions(of url: URL, _ seed: UInt64) -> NetworkConditions {
        let link = NetworkConditions.Link(
            delay: .milliseconds(3), jitter: .milliseconds(3), segmentSize: 1...4096)
        var conditions = NetworkConditions(toServer: link, toClient: link, seed: seed)
        // microsocks takes what one recv(2) returns for a whole message.
        if url.scheme == "socks5h" { conditions.toServer.segmentSize = nil }
        return conditions
    }

    static func main() async throws {
        guard CommandLine.arguments.count == 2, let seed = UInt64(CommandLine.arguments[1]) else {
            throw Misuse(description: "usage: FarProgram SEED < names and URLs")
        }
        var relays: [NetworkRelay] = []
        while let line = readLine(), !line.isEmpty {
            let words = line.split(separator: " ", maxSplits: 1)
            guard words.count == 2, let url = URL(string: String(words[1])) else {
                throw Misuse(description: "no name and URL: \(line)")
            }
            let relay = try NetworkRelay(to: url, conditions(of: url, seed))
            relay.start()
            relays.append(relay)
            print(words[0], relay.url(url).absoluteString)
        }
        print("")
        fflush(nil)
        while readLine() != nil {}
        for relay in relays { await relay.stop() }
    }
}

struct Misuse: Error, CustomStringConvertible {
    let description: String
}
