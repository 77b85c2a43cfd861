// SPDX-License-Identifier: Apache-2.0

// In this folder: `urlload bg`

// `urlload bg`: transfers that the background agent carries out, also after this program has ended.

import FoundationEssentials
import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

enum BackgroundCommand {
    static let usage = """
        urlload bg get [options] URL…      hand downloads over to the background agent
        urlload bg put [options] -T FILE URL
        urlload bg ls [--json|--fleet]     list the transfers of all programs of this user
        urlload bg watch                   print the results of this command's transfers, until all have ended
        urlload bg pause|resume|cancel ID… (the beginning of an id is enough; --all for all)
        urlload bg logs                    print the agent's log
        urlload bg doctor                  whether there is an agent, and what transfers survive on this system

        get and put return once the agent has the transfers on its disk, and print their ids. Transfers
        continue when this command has ended, and, where doctor says so, after a logout or a reboot. The options are
        those of urlload that concern a request or its file (-o, -O, -f, -H, -X, -u, -m, -k …): urlload --help all
        lists them; an option that the agent cannot apply is refused. Without -o a download is named after its URL. A
        result stays listed until watch has printed it. If agents share a queue, ls on a terminal, ls --fleet, watch
        and doctor show them: each with its places and the rest of its lease, hosts at their limit, the oldest that waits.
        Exit code 0; 22 if no transfer has the id; 7 if there is no agent; that of the first failed transfer for watch.

        """

    static func run(_ arguments: [String]) async -> ExitCode {
        let rest = Array(arguments.dropFirst())
        do throws(UsageError) {
            switch arguments.first {
            case nil, "-h", "--help": return print(usage)
            case "get": return await submit(try ArgumentParser.parseAll(rest, config: nil), isUpload: false)
            case "put": return await submit(try ArgumentParser.parseAll(rest, config: nil), isUpload: true)
            case "ls" where rest == ["--fleet"]: return await list(asJSON: false, showsFleet: true)
            case "ls": return await list(asJSON: try flag("--json", rest))
            case "watch":
                _ = try flag("", rest)
                return await watch()
            case "pause"?, "resume"?, "cancel"?: return await command(arguments[0], rest)
            case "logs": return logs()
            case "doctor": return await doctor()
            case let other?: return wrong("bg has no command \(other)")
            }
        } catch { return wrong(error.words) }
    }

    /// Whether the only argument that a verb takes is there.
    private static func flag(_ name: String, _ arguments: [String]) throws(UsageError) -> Bool {
        if let other = arguments.first(where: { $0 != name }) {
            throw UsageError("this command has no option \(other)")
        }
        return !arguments.isEmpty
    }

    private static func wrong(_ words: String) -> ExitCode {
        try? FileDescriptor.standardError.write("urlload: \(words)\nurlload bg --help says more\n")
        return .usage
    }

    private static func print(_ text: String) -> ExitCode {
        do throws(OutputError) { try FileDescriptor.standardOutput.write(text) } catch { return error.code }
        return .done
    }

    // MARK: Sessions

    private static let prefix = "urlload"

    /// Transfers with the same settings of the session share an identifier.
    private static func configuration(_ options: Options) -> Configuration {
        var configuration = Configuration(options, Screen(options))
        configuration.storageDirectory = nil
        configuration.cookies.storage = .none
        configuration.hsts.storage = .none
        configuration.observers = []
        configuration.authentication.credentialStore = nil
        configuration.authentication.bearer = nil
        configuration.background = .init(identifier: prefix + "." + configuration.backgroundDigest)
        return configuration
    }

    private static func observer(_ identifier: String) -> Session {
        var configuration = Configuration.background(identifier)
        configuration.background?.observes = true
        return Session(configuration)
    }

    /// Runs code with a session, and closes its connection.
    private static func with<R>(_ session: Session, _ use: (Session) async throws(LoadError) -> R)
        async throws(LoadError)
        -> R
    {
        let result: Result<R, LoadError>
        do throws(LoadError) { result = .success(try await use(session)) } catch { result = .failure(error) }
        session.finishTasksAndInvalidate()
        await session.invalidated()
        return try result.get()
    }

    private static func failed(_ error: LoadError) -> ExitCode {
        try? FileDescriptor.standardError.write(
            "urlload: \(error.detail ?? error.reason.name) (\(error.reason.name))\n")
        return error.reason == .backgroundAgentUnavailable ? .connect : ExitCode(error)
    }

    // MARK: get, put

    private static func submit(_ groups: [Options], isUpload: Bool) async -> ExitCode {
        if groups.contains(where: \.wantsHelp) { return print(usage) }
        var code = ExitCode.done
        for var options in groups {
            if let problem = BackgroundUse.problem(options) { return wrong(problem) }
            if let mistake = LoadCommand.askForPasswords(&options) { return wrong(mistake) }
            if !isUpload, options.outputs.isEmpty { options.saving.namesAll = true }
            let jobs: [Job]
            do throws(OutputError) { jobs = try Job.all(options) } catch {
                try? FileDescriptor.standardError.write("urlload: \(error.words)\n")
                return error.code
            }
            guard !jobs.isEmpty else { return wrong("no URL") }
            guard !isUpload || jobs.allSatisfy({ $0.options.request.upload != nil }) else {
                return wrong("bg put sends a file: -T FILE")
            }
            do throws(OutputError) { try makeFolders(jobs) } catch {
                try? FileDescriptor.standardError.write("urlload: \(error.words)\n")
                return error.code
            }
            do throws(LoadError) {
                try await submit(jobs, options)
            } catch  where error.reason == .backgroundSessionInUse {
                // `bg watch` runs: it receives the results, and its session submits this command's transfers.
                do throws(LoadError) { try await submit(jobs, options, observing: true) } catch { code = failed(error) }
            } catch { code = failed(error) }
        }
        return code
    }

    private static func makeFolders(_ jobs: [Job]) throws(OutputError) {
        for job in jobs where job.options.saving.makesFolders {
            if case .file(let path) = job.options.output.destination { try Folder.make(for: path) }
        }
    }

    private static func submit(_ jobs: [Job], _ options: Options, observing: Bool = false) async throws(LoadError) {
        var configuration = configuration(options)
        configuration.background?.observes = observing
        try await with(Session(configuration)) { (session) throws(LoadError) in
            for job in jobs {
                let transfer = try await submit(job, session)
                try? FileDescriptor.standardOutput.write("\(transfer.id)\n")
            }
        }
    }

    private static func submit(_ job: Job, _ session: Session) async throws(LoadError) -> BackgroundTransfer {
        guard let url = AddressText.url(job.url) else {
            throw LoadError(.badURL, phase: .preparing, party: .local, detail: AddressText.inMessage(job.url))
        }
        var request: Request
        do { request = try Request(job.options, url) } catch {
            throw LoadError(
                .badRequest, phase: .preparing, party: .local, detail: "\((error as? OutputError)?.words ?? "")")
        }
        let login = job.options.login
        if let user = login.user, !request.headers.contains(.authorization),
            var parts = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
        {
            // The login of the URL is used when the server asks for one, with the schemes of the options.
            (parts.user, parts.password) = (user, login.password)
            request.url = parts.url ?? request.url
        }
        if let token = login.token { request.headers[.authorization] = "Bearer " + token }
        let options = BackgroundNote.options(job.options)
        if let path = job.options.request.upload {
            request.body = nil
            return try await session.background.upload(request, fromFile: URL(filePath: path), options: options)
        }
        guard case .file(let path) = job.options.output.destination else {
            throw LoadError(
                .badRequest, phase: .preparing, party: .local,
                detail: "a background transfer cannot write to standard output (-o -)")
        }
        return try await session.background.download(request, to: URL(filePath: path), options: options)
    }

    // MARK: ls

    private static func identifiers() async throws(LoadError) -> [String] {
        try await with(observer(prefix)) { (session) throws(LoadError) in try await session.background.identifiers }
    }

    private static func all() async throws(LoadError) -> [(identifier: String, transfers: [BackgroundTransfer])] {
        var found: [(identifier: String, transfers: [BackgroundTransfer])] = []
        for identifier in try await identifiers() {
            let transfers = try await with(observer(identifier)) { (session) throws(LoadError) in
                try await session.background.transfers
            }
            found.append((identifier, transfers))
        }
        return found
    }

    /// The lines about the agents that share the agent's queue; none if it is alone, or does not know.
    private static func fleet() async -> [String] {
        guard let link = try? await AgentLauncher.open(AgentLauncher.facts()) else { return [] }
        defer { link.close() }
        return await fleet(link)
    }

    private static func fleet(_ link: AgentLink) async -> [String] {
        guard case .report(let text)? = try? await link.request(.fleet) else { return [] }
        return text.split(separator: "\n").map(String.init)
    }

    private static func list(asJSON printsJSON: Bool, showsFleet: Bool = false) async -> ExitCode {
        do throws(LoadError) {
            let isForPeople = !printsJSON && FileDescriptor.standardOutput.isTerminal
            let all = try await all().flatMap { (identifier, transfers) in transfers.map { ($0, identifier) } }
            var lines =
                if printsJSON {
                    all.map { BackgroundLines.json($0, $1) }
                } else if isForPeople { BackgroundLines.table(all) } else { all.map { BackgroundLines.text($0, $1) } }
            if isForPeople || showsFleet { lines += await fleet() }
            return print(lines.map { $0 + "\n" }.joined())
        } catch { return failed(error) }
    }

    // MARK: watch

    /// The exit code of the first transfer that failed.
    private final class Outcome: Sendable { let code = Lock(ExitCode.done) }

    /// Takes the results of this command's transfers, one identifier after the other, until there are none.
    private static func watch() async -> ExitCode {
        let outcome = Outcome()
        try? FileDescriptor.standardError.write(await fleet().map { $0 + "\n" }.joined())
        do throws(LoadError) {
            for (identifier, transfers) in try await all()
            where identifier.hasPrefix(prefix + ".") && !transfers.isEmpty {
                var configuration = Configuration.background(identifier)
                configuration.background?.keepsSettings = true
                try await watch(Session(configuration), outcome)
            }
        } catch { return failed(error) }
        return Signals.exitCode ?? outcome.code.withLock { $0 }
    }

    private static func watch(_ session: Session, _ outcome: Outcome) async throws(LoadError) {
        Signals.watch { session.invalidateAndCancel() }
        try await with(session) { (session) throws(LoadError) in
            do {
                try await session.background.handleEvents { event in
                    let (line, exit) = BackgroundLines.result(event)
                    try FileDescriptor.standardOutput.write(line + "\n")
                    outcome.code.withLock { if $0 == .done { $0 = exit } }
                    // The event that is being handled is still listed.
                    let left = try await session.background.transfers.filter { $0.state != .suspended }
                    if left.allSatisfy({ $0.id == event.transfer.id }) {
                        Task { session.finishTasksAndInvalidate() }
                    }
                }
            } catch let error as LoadError { throw error } catch {
                throw LoadError(.cancelled, phase: .receiving, party: .local, detail: "\(error)")
            }
        }
    }

    // MARK: pause, resume, cancel

    private static func command(_ verb: String, _ arguments: [String]) async -> ExitCode {
        guard !arguments.isEmpty else { return wrong("bg \(verb) takes ids, or --all") }
        var count = 0
        do throws(LoadError) {
            for identifier in try await identifiers() {
                count += try await with(observer(identifier)) { (session) throws(LoadError) in
                    var count = 0
                    for transfer in try await session.background.transfers
                    where arguments.contains(where: { $0 == "--all" || transfer.id.hasPrefix($0) }) {
                        if transfer.state == .finished { continue }
                        switch verb {
                        case "pause": try await transfer.suspend()
                        case "resume": try await transfer.resume()
                        default: try await transfer.cancel()
                        }
                        count += 1
                    }
                    return count
                }
            }
        } catch { return failed(error) }
        if count == 0 {
            try? FileDescriptor.standardError.write("urlload: no unfinished transfer has this id\n")
        }
        return count > 0 ? .done : .httpError
    }

    // MARK: logs, doctor

    private static func logs() -> ExitCode {
        let facts = AgentLauncher.facts()
        for name in ["agent.log.1", "agent.log"] {
            guard let text = try? FileReader.text(facts.stateFolder + "/" + name) else { continue }
            do throws(OutputError) { try FileDescriptor.standardOutput.write(text) } catch { return error.code }
        }
        if case .listening = LaunchPlan.make(facts) {
            try? FileDescriptor.standardError.write(
                "urlload: a service manager's agent logs to its journal: journalctl --user -u url-loading-agent\n")
        }
        return .done
    }

    private static func doctor() async -> ExitCode {
        let facts = AgentLauncher.facts()
        let plan = LaunchPlan.make(facts)
        var lines = ["agent     \(plan)", "state     \(facts.stateFolder)"]
        var code = ExitCode.done
        do throws(AgentFailure) {
            let link = try await AgentLauncher.open(facts)
            lines.append("process   \(link.welcome.process) (\(link.welcome.manner)), protocol \(link.welcome.version)")
            if let survival = BackgroundSurvival(text: link.welcome.survival) {
                lines.append("survival  \(survival): \(BackgroundLines.words(survival))")
            }
            if case .report(let text) = try await link.request(.status) { lines.append("status    \(text)") }
            lines += await fleet(link)
            link.close()
        } catch {
            lines.append("problem   \(error.detail)")
            code = .connect
        }
        let printed = print(lines.joined(separator: "\n") + "\n")
        return code == .done ? printed : code
    }
}
