// SPDX-License-Identifier: Apache-2.0

// The `Progress` of a task: created at the first access, and updated from then on.

import Foundation
import Synchronization

extension URLSessionTask {
    /// Connects a task and its progress in both directions: the progress shows the task and controls it.
    final func connect(_ progress: TaskProgress) {
        progress.kind = .file
        progress.setUserInfoObject(Foundation.Progress.FileOperationKind.downloading, forKey: .fileOperationKindKey)
        progress.totalUnitCount = NSURLSessionTransferSizeUnknown
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { [weak self] in self?.cancel() }
        progress.pausingHandler = { [weak self] in self?.suspend() }
        progress.resumingHandler = { [weak self] in self?.resume() }
        bridge?.hasProgress.store(true, ordering: .sequentiallyConsistent)
        showProgress(isWhole: state == .completed && error == nil && bridge != nil)
    }

    /// - Parameter isWhole: whether the load is complete and no further bytes follow.
    final func showProgress(isWhole: Bool) {
        guard let progress = knownProgress else { return }
        let done = countOfBytesSent + countOfBytesReceived
        if isWhole {
            // An empty transfer is complete, too; a `Progress` with a total of 0 never finishes.
            let whole = max(done, 1)
            progress.set(completed: whole, of: whole)
        } else {
            progress.set(completed: done, of: whole)
        }
    }

    /// The total number of bytes; -1 if unknown.
    private var whole: Int64 {
        let toSend = countOfBytesExpectedToSend >= 0 ? countOfBytesExpectedToSend : countOfBytesClientExpectsToSend
        let isKnown = response != nil && countOfBytesExpectedToReceive >= 0
        let toReceive = isKnown ? countOfBytesExpectedToReceive : countOfBytesClientExpectsToReceive
        guard toSend >= 0, toReceive >= 0 else { return NSURLSessionTransferSizeUnknown }
        // A server may state any length, so the sum may overflow.
        let (sum, isTooMuch) = toSend.addingReportingOverflow(toReceive)
        return isTooMuch ? NSURLSessionTransferSizeUnknown : sum
    }
}
