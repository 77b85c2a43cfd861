// The command: reads the arguments, loads each URL, tells how it went.

import URLLoading

enum Command {
    static func run(_ arguments: [String]) async -> ExitCode {
        if arguments.isEmpty { return await Demonstration.run() }
        if arguments[0] == "tour" { return await Tour.run(Array(arguments.dropFirst())) }
        if arguments[0] == "ws" { return await WebSocketCommand.run(Array(arguments.dropFirst())) }
        if arguments[0] == "tls" { return await TLSCommand.run(Array(arguments.dropFirst())) }
        if arguments[0] == "cache" { return CacheCommand.run(Array(arguments.dropFirst())) }
        var options: Options
        do throws(UsageError) { options = try ArgumentParser.parse(arguments) } catch {
            return usage(error.words)
        }
        if options.wantsHelp { return print(Help.text) }
        if options.wantsVersion { return print(Help.version + "\n") }
        if options.urls.isEmpty { return usage("no URL") }
        if options.login.needsPassword, let user = options.login.user {
            guard let password = PasswordPrompt.ask("Password of \(user): ") else {
                return usage("-u needs a password, and there is no terminal to ask for it")
            }
            options.login.password = password
        }
        if let user = options.way.proxyUser, !user.contains(":"),
            let password = PasswordPrompt.ask("Password of \(user) at the proxy: ")
        {
            options.way.proxyUser = "\(user):\(password)"
        }
        return await load(options)
    }

    static func load(_ options: Options) async -> ExitCode {
        let screen = Screen(options)
        if options.isInsecure {
            screen.message(Help.insecureWarning)
        }
        let archiver = options.archiveFile.map { _ in Archive.archiver(options) }
        var configuration = Configuration(options, screen, archiver)
        do throws(LoadError) {
            try options.trust.apply(try await options.trust.identity(), to: &configuration.tls)
        } catch {
            screen.message(ErrorWords.identity(error))
            return ExitCode(error)
        }
        let memory: Memory
        do throws(OutputError) { memory = try Memory(options) } catch {
            screen.message(error.words)
            return error.code
        }
        for complaint in memory.complaints { screen.message(complaint) }
        if let problem = options.login.netrc?.problem { screen.message("warning: \(problem)") }
        configuration.cookies.storage = .store(memory.cookies)
        configuration.hsts.storage = .store(memory.hsts)
        let session = Session(configuration)
        Signals.watch { session.invalidateAndCancel() }
        // On the loop's own thread: no thread is woken on the way from the socket to the output.
        let loaded = await withTaskExecutorPreference(eventLoopExecutor) {
            let code = await loadAll(options, Transfer(options: options, session: session, screen: screen), screen)
            session.invalidateAndCancel()
            await session.invalidated()
            // The disk follows behind; nothing else goes on any more.
            session.configuration.cache?.flush()
            return code
        }
        let remembered = memory.write(screen)
        let code = loaded == .done ? remembered : loaded
        guard let archiver, let path = options.archiveFile else { return Signals.exitCode ?? code }
        let written = Archive.write(archiver.archive, to: path, screen)
        return Signals.exitCode ?? (code == .done ? written : code)
    }

    /// One after the other in the order given; with `-O` as many at a time as a host may get.
    private static func loadAll(_ options: Options, _ transfer: Transfer, _ screen: Screen) async -> ExitCode {
        let width = options.destination == .namedAfterURL ? transfer.session.configuration.maximumConnectionsPerHost : 1
        return await withTaskGroup(of: Report.self) { group in
            var code = ExitCode.done
            var loads = transfers(options, transfer)[...]
            for load in loads.prefix(width) { group.addTask { await load.transfer.run(load.url) } }
            loads = loads.dropFirst(width)
            for await report in group {
                let own = tell(report, options, screen)
                if code == .done { code = own }
                // Nobody reads any more, or nobody wants any more.
                if own == .brokenPipe || Signals.exitCode != nil { loads = [] }
                if let load = loads.popFirst() { group.addTask { await load.transfer.run(load.url) } }
            }
            return code
        }
    }

    /// The URLs, each with a transfer to where its body goes. A name that `-O` gives to two of them gets a number the
    /// second time.
    private static func transfers(_ options: Options, _ transfer: Transfer) -> [(url: String, transfer: Transfer)] {
        guard options.destination == .namedAfterURL else { return options.urls.map { ($0, transfer) } }
        let names = FileName.distinct(options.urls.map { AddressText.url($0).map(FileName.make) })
        return zip(options.urls, names).map { text, name in
            guard let name else { return (text, transfer) }
            var own = options
            own.destination = .file(name.own)
            if name.own != name.wanted {
                let address = AddressText.url(text).map(AddressText.shown) ?? text
                transfer.screen.message("\(address) goes to \(name.own): an earlier URL goes to \(name.wanted)")
            }
            return (text, Transfer(options: own, session: transfer.session, screen: transfer.screen))
        }
    }

    private static func tell(_ report: Report, _ options: Options, _ screen: Screen) -> ExitCode {
        let code = report.failure?.exit ?? .done
        if let failure = report.failure, code != .brokenPipe, Signals.exitCode == nil {
            let address =
                failure.exit == .write || failure.exit == .read
                ? "" : AddressText.inMessage(report.effectiveURL ?? report.url) + ": "
            screen.message(address + ErrorWords.make(failure))
        }
        if code == .done, let page = ErrorWords.savedPage(report) { screen.message(page) }
        // Lines of events are not followed by one that is none.
        guard options.printsJSON, !options.printsEvents else { return code }
        let written = print(report.json.description + "\n")
        return code == .done ? written : code
    }

    private static func usage(_ words: String) -> ExitCode {
        try? FileDescriptor.standardError.write("urlload: \(words)\nurlload --help lists the options\n")
        return .usage
    }

    private static func print(_ text: String) -> ExitCode {
        do throws(OutputError) { try FileDescriptor.standardOutput.write(text) } catch {
            if error.code != .brokenPipe { try? FileDescriptor.standardError.write("urlload: \(error.words)\n") }
            return error.code
        }
        return .done
    }
}
