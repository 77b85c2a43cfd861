// SPDX-License-Identifier: Apache-2.0

// Runs the agent's process: journal, socket, programs, idleness, exit.

import URLLoading
import URLLoadingIO

struct AgentProcess: Sendable {
    private let options: AgentOptions
    private let environment: [String: String]
    private let manager: ServiceManager
    private let folder: String

    init(_ options: AgentOptions) {
        self.options = options
        environment = ProgramEnvironment.all
        manager = ServiceManager(environment, process: ProgramEnvironment.process)
        let own = environment["STATE_DIRECTORY"].flatMap { $0.split(separator: ":").first.map(String.init) }
        folder = options.folder ?? own ?? AgentLauncher.facts(environment).stateFolder
    }

    func run() async -> Int32 {
        guard !options.drains else { return await drain() }
        let opened: Opened
        let service: TransferService
        do throws(JournalFailure) {
            opened = try await open()
            let journal = opened.journal
            let files = options.files ?? environment["URLLOADING_FILES"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            service = try TransferService(
                journal, folder: folder, files: journal.signals == nil ? nil : files,
                log: { BackgroundAgent.log($0) })
        } catch {
            switch error {
            case .inUse: BackgroundAgent.log("another agent uses the journal in \(folder)")
            case .newer(let version):
                return await refuse(
                    "\(place) is of version \(version), later than this agent; it is left as it is")
            case .failed(let words): BackgroundAgent.log("\(place) cannot be opened: \(words)")
            // Of a write only.
            case .stale, .elsewhere: break
            }
            return error == .inUse ? 75 : 70
        }
        let listener: LocalListener
        do throws(IOFailure) { listener = try listen() } catch {
            BackgroundAgent.log("the socket cannot be opened: \(error.words)")
            return 70
        }
        defer { withExtendedLifetime(opened) {} }
        return await serve(service, listener)
    }

    private var socket: String { options.socket ?? folder + "/agent.sock" }

    /// Lets another agent take no more work, and waits until it has exited.
    private func drain() async -> Int32 {
        do throws(AgentFailure) {
            let link = try await AgentLink.open(socket)
            _ = try await link.request(.drain)
            // The end of the connection is the end of the agent.
            for await _ in link.announcements {}
            link.close()
            return 0
        } catch {
            BackgroundAgent.log(error.detail)
            return 69
        }
    }

    private var address: JournalAddress? {
        options.journal ?? environment[JournalAddress.variable].flatMap(JournalAddress.init)
    }

    /// The journal in words.
    private var place: String { address.map { "the journal in \($0)" } ?? "the journal in \(folder)" }

    /// Tells the log, and for ten seconds the programs, why this agent cannot run.
    private func refuse(_ reason: String) async -> Int32 {
        BackgroundAgent.log(reason)
        if let listener = try? listen() {
            await AgentServer.refuse(listener, AgentFailure(.version, reason), for: 10_000_000_000)
        }
        return 70
    }

    /// A journal, and what keeps other agents from the folder.
    private struct Opened: Sendable {
        let journal: any Journal
        var lock: FileLock?
    }

    /// Opens the journal, and waits for an agent of this folder that is just exiting.
    private func open() async throws(JournalFailure) -> Opened {
        if let text = environment[JournalAddress.variable], !text.isEmpty, address == nil {
            throw .failed("\(JournalAddress.variable) is not an address such as postgresql://host/name")
        }
        for _ in 0..<50 {
            do throws(JournalFailure) {
                guard let address else { return Opened(journal: try SQLiteJournal(folder: folder)) }
                let lock = try SQLiteJournal.lock(folder)
                let journal = try await PostgresJournal.open(address.text) { BackgroundAgent.log($0) }
                return Opened(journal: journal, lock: lock)
            } catch {
                guard error == .inUse else { throw error }
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
        throw .inUse
    }

    private func listen() throws(IOFailure) -> LocalListener {
        if let descriptor = options.listener ?? manager.listener { return try LocalListener(adopting: descriptor) }
        if let slash = socket.lastIndex(of: "/"), slash != socket.startIndex {
            try PrivateFolder.make(String(socket[..<slash]))
        }
        return try LocalListener(replacing: socket)
    }

    private func serve(_ service: TransferService, _ listener: LocalListener) async -> Int32 {
        let survival = SurvivalPlan.current(environment, isManaged: manager.listener != nil)
        let server = AgentServer(service, survival: survival.text, manner: manner) { BackgroundAgent.log($0) }
        let alarm = service.alarm
        AgentSignals.watch { alarm.handOver() }
        let token = StopToken()
        await service.start()
        let accepting = Task { await server.serve(listener, token) }
        let watching = Task {
            var isFirst = true
            for await path in NetworkMonitor.shared.paths {
                if !isFirst, path.isSatisfied { await service.pathChanged() }
                isFirst = false
            }
        }
        manager.notify("READY=1", "STATUS=\(await service.status)")
        await work(service, listener, server)
        manager.notify("STOPPING=1")
        token.stop(.cancelled)
        watching.cancel()
        await accepting.value
        await service.stop()
        return 0
    }

    /// Works until the agent must exit.
    private func work(_ service: TransferService, _ listener: LocalListener, _ server: AgentServer) async {
        let alarm = service.alarm
        var status = ""
        while !alarm.handsOver {
            await alarm.wait(atMost: min(manager.watchdog ?? .max, 5_000_000_000))
            if manager.watchdog != nil { manager.notify("WATCHDOG=1") }
            if alarm.isDue() { await service.schedule() }
            let now = await service.status
            if now != status {
                manager.notify("STATUS=\(now)")
                status = now
            }
            if let idle = options.idle, let time = await service.idleTime, time >= idle, mayLeave(listener, server) {
                return
            }
        }
    }

    /// Removes the socket, unless a program has just connected.
    private func mayLeave(_ listener: LocalListener, _ server: AgentServer) -> Bool {
        // The socket of a service manager stays: the next connection starts the agent again.
        guard manager.listener == nil else { return !serveWaiting(listener, server) }
        // Programs that look for an agent hold this lock while they start one.
        guard let lock = try? FileLock(folder + "/launch.lock", timeout: 0) else { return false }
        defer { withExtendedLifetime(lock) {} }
        if serveWaiting(listener, server) { return false }
        if let socket = options.socket { PrivateFolder.remove(socket) }
        return true
    }

    private func serveWaiting(_ listener: LocalListener, _ server: AgentServer) -> Bool {
        guard let socket = (try? listener.acceptNow()) ?? nil else { return false }
        server.accept(socket)
        return true
    }

    private var manner: String {
        manager.listener != nil ? "socket unit" : environment["INVOCATION_ID"] != nil ? "service" : "spawned"
    }
}
