// SPDX-License-Identifier: Apache-2.0

// What `urlload bg get` and `put` leave with a transfer for the `watch` that takes its result.

import FoundationEssentials
import URLLoading

enum BackgroundNote {
    /// `--fail-with-body`: the body of an error status is kept, and the exit code is 22.
    private static let failsWithBody = Data("fail-with-body".utf8)

    static func options(_ options: Options) -> BackgroundOptions {
        var own = BackgroundOptions()
        own.parallelRanges = options.connections.parallelRanges
        if options.output.failsWithBody {
            own.userData = failsWithBody
        } else {
            own.requiresSuccess = options.output.failsOnStatus
        }
        return own
    }

    static func exitCode(_ transfer: BackgroundTransfer, _ response: Response) -> ExitCode {
        transfer.userData == failsWithBody && response.status.code >= 400 ? .httpError : .done
    }
}
