// SPDX-License-Identifier: Apache-2.0

// The smallest program with the library: its size, and what a process needs from its start to its first response.

import FoundationEssentials
import URLLoading

@main
enum Hello {
    static func main() async throws {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else { return }
        let (data, _) = try await Session().data(from: url)
        print(data.count)
    }
}
