// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoading
import URLLoadingTesting
import URLLoadingWire

/// The examples of docs/guides/background.md and of the README.
@Suite(.timeLimit(.minutes(2))) struct BackgroundGuideTests {
    @Test("The examples of the guide on background transfers compile and work")
    func guide() async throws {
        try await SurvivalRows.with { rig, origin in
            origin.route("/put") { _ in .ok("thanks") }
            let url = origin.url("/film")
            let place = URL(filePath: rig.folder + "/film.bin")
            let source = URL(filePath: rig.folder + "/source.bin")
            try Data("content".utf8).write(to: source)
            var configuration = Configuration.background("org.example.sync")
            configuration.background?.wakes = .command(["/usr/bin/sync-photos", "--deliver"])
            configuration.background?.wakes = nil
            configuration.background?.socket = rig.socket
            configuration.cookies.storage = .none
            configuration.hsts.storage = .none
            let session = Session(configuration)
            try await session.background.download(
                Request(url: url), to: place, options: BackgroundOptions(label: "film"))
            for transfer in try await session.background.transfers {
                print(transfer.id, transfer.label, transfer.state, transfer.received)
                try await transfer.suspend()
                try await transfer.resume()
            }
            try await session.background.handleEvents { event in
                switch event.result {
                case .downloaded(let file): print(event.transfer.label, file.url, file.size)
                case .uploaded(let data, let response): print(response.status, data.count)
                case .failed(let error): Issue.record("\(error)")
                }
                Task { session.finishTasksAndInvalidate() }
            }
            await session.invalidated()
            #expect(Film.of(place.path()) == Film.content)
            try await tasks(Session(configuration), url, place, origin.url("/put"), source)
        }
    }

    private func tasks(_ session: Session, _ url: URL, _ place: URL, _ target: URL, _ source: URL) async throws {
        let task = session.downloadTask(Request(url: url), options: DownloadOptions(destination: place))
        task.resume()
        try await task.accepted
        let file = try await task.value
        #expect(file.size == Int64(Film.content.count))
        let (data, response) = try await session.upload(Request(url: target, method: .put), from: .file(source))
        #expect(String(decoding: data, as: UTF8.self) == "thanks" && response.status == .ok)
        switch try await session.background.survival {
        case .reboot, .untilReboot: break
        case .untilLogout: print("loginctl enable-linger lets transfers run on after the logout")
        case .untilStop(let unit): print("stopping \(unit) interrupts transfers")
        }
        session.invalidateAndCancel()
        await session.invalidated()
    }
}
