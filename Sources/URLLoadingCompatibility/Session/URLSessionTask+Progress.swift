// The `Progress` of a task: made when somebody asks for it, and kept up to date from then on.

import Foundation
import Synchronization
import URLLoading
import URLLoadingIO

extension URLSessionTask {
    /// It works both ways: it shows the task, and controls it.
    final func connect(_ progress: Foundation.Progress) {
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

    /// - Parameter isWhole: nothing more comes, and nothing is missing.
    final func showProgress(isWhole: Bool) {
        guard let progress = knownProgress else { return }
        let done = countOfBytesSent + countOfBytesReceived
        if isWhole {
            // What is empty is done, too: a whole of 0 is never finished.
            let whole = max(done, 1)
            progress.totalUnitCount = whole
            progress.completedUnitCount = whole
        } else {
            progress.totalUnitCount = whole
            progress.completedUnitCount = done
        }
    }

    /// -1 if nobody knows.
    private var whole: Int64 {
        let toSend = countOfBytesExpectedToSend >= 0 ? countOfBytesExpectedToSend : countOfBytesClientExpectsToSend
        let isKnown = response != nil && countOfBytesExpectedToReceive >= 0
        let toReceive = isKnown ? countOfBytesExpectedToReceive : countOfBytesClientExpectsToReceive
        guard toSend >= 0, toReceive >= 0 else { return NSURLSessionTransferSizeUnknown }
        // Servers say what they like.
        let (sum, isTooMuch) = toSend.addingReportingOverflow(toReceive)
        return isTooMuch ? NSURLSessionTransferSizeUnknown : sum
    }
}
