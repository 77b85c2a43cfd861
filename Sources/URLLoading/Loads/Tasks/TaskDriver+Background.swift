// SPDX-License-Identifier: Apache-2.0

// Tasks that the background agent carries out.

import FoundationEssentials
import Synchronization
import URLLoadingIO

extension TaskDriver {
    /// Runs the task by a transfer of the agent, from its submission to its event.
    func carryOut(_ background: BackgroundWork) async {
        let event: PendingEvent
        do throws(LoadError) { event = try await background.run(self) } catch {
            return complete(.failed(LoadError(stopReason, or: error.at(original.url))))
        }
        do throws(LoadError) {
            let result: Result<BackgroundResult, LoadError>
            do throws(LoadError) { result = try await BackgroundResult.of(event.record, core.cookies) } catch {
                // The file stays with the agent, and its event is for another task.
                background.leaveEvent()
                throw error
            }
            try await deliver(result.get(), background)
        } catch {
            complete(.failed(LoadError(stopReason, or: error.at(original.url))))
        }
        await background.acknowledge(event)
    }

    private func deliver(_ result: BackgroundResult, _ background: BackgroundWork) async throws(LoadError) {
        switch result {
        case .file(let file):
            background.note(file.response, self)
            background.noteEnd(file.size, self)
            download?.adopt(file)
        case .answer(let data, let response):
            background.note(response, self)
            background.noteEnd(Int64(data.count), self)
            let chunk = data.withUnsafeBytes { Chunk(copying: $0) }
            if let sink { await sink.receive(chunk) } else { try appendCollected(chunk) }
        }
        complete(.finished)
    }

    private func appendCollected(_ chunk: Chunk) throws(LoadError) {
        let limit = core.configuration.limits.collectedBodySize
        try state.withLock { state throws(LoadError) in
            try state.keep(chunk, readAhead: chunk.count, limit: limit)
        }.wake()
    }
}
