// SPDX-License-Identifier: Apache-2.0

// In this folder: one load after another, or all at once

// Loads the URLs of each group, and tells how it went.

import URLLoading

enum LoadCommand {
    /// Runs the groups in order; the exit code is that of the first failure.
    static func run(_ groups: [Options]) async -> Ending {
        if let topic = groups.first(where: \.wantsHelp)?.helpTopic {
            do throws(UsageError) { return Ending(Console.print(try Help.text(about: topic))) } catch {
                return Ending(Console.usage(error.words))
            }
        }
        if let kind = groups.lazy.compactMap(\.generated).first { return Ending(Generator.run(kind)) }
        if groups.contains(where: \.wantsVersion) { return Ending(Console.print(Help.version + "\n")) }
        guard groups.allSatisfy({ !$0.urls.isEmpty || !$0.saving.inputLists.isEmpty }) else {
            return Ending(Console.usage("no URL" + OptionHints.hint(groups), groups[0].shared.grammar.help))
        }
        var ending = Ending.done
        for var options in groups {
            let grammar = options.shared.grammar
            if let mistake = askForPasswords(&options) {
                return Ending(Console.usage(grammar.naming(mistake), grammar.help))
            }
            let own: Ending
            do throws(OutputError) {
                try PipedData.read(&options)
                own = await load(options)
            } catch {
                Screen(options).error(error.words)
                own = Ending(error.code)
            }
            ending = ending.followed(by: own, in: grammar)
            if Signals.exitCode != nil || own.code == .brokenPipe || options.shared.failsEarly && own != .done { break }
        }
        return ending
    }

    /// - Returns: an error if there is no terminal to ask on.
    static func askForPasswords(_ options: inout Options) -> String? {
        if options.login.needsPassword, let user = options.login.user {
            guard let password = PasswordPrompt.ask("Password of \(user): ") else {
                return "-u needs a password, and there is no terminal to ask for it"
            }
            options.login.password = password
        }
        if let user = options.networks.proxyUser, !user.contains(":"),
            let password = PasswordPrompt.ask("Password of \(user) at the proxy: ")
        {
            options.networks.proxyUser = "\(user):\(password)"
        }
        return nil
    }

    static func load(_ options: Options) async -> Ending {
        let screen = Screen(options)
        if options.tls.isInsecure {
            screen.message(options.shared.grammar.naming(Help.insecureWarning))
        }
        let archiver = options.output.archiveFile.map { _ in Archive.archiver(options) }
        let jobs: [Job]
        let heads: HeadFile?
        let memory: Memory
        let packetLog: PacketLog?
        do throws(OutputError) {
            jobs = try Job.all(options)
            heads = try options.output.headFile.map { (path) throws(OutputError) in try HeadFile(path) }
            memory = try Memory(options, jobs.map(\.url))
            packetLog = try options.output.packetLogFile.map { (path) throws(OutputError) in
                try PacketLog.shared(path)
            }
        } catch {
            screen.error(error.words)
            return Ending(error.code)
        }
        var known = options
        known.urls = jobs.map(\.url)
        var configuration = Configuration(known, screen, archiver, packetLog)
        let grammar = options.shared.grammar
        if let code = await options.tls.apply(to: &configuration.tls, in: grammar, screen.error) { return Ending(code) }
        for complaint in memory.complaints { screen.message(complaint) }
        if let problem = options.login.netrc?.problem { screen.message("warning: \(problem)") }
        configuration.cookies.storage = .store(memory.cookies)
        configuration.hsts.storage = .store(memory.hsts)
        let session = Session(configuration, decisions: options.login.signing)
        Signals.watch { session.invalidateAndCancel() }
        // The loads run on the event loop's own thread: no thread is woken between the socket and the output.
        var loaded = await withTaskExecutorPreference(eventLoopExecutor) {
            let ending = await Queue(options, session, screen, heads).run(jobs)
            session.invalidateAndCancel()
            await session.invalidated()
            // Waits for the responses that are still being stored.
            session.configuration.caching.store?.flush()
            return ending
        }
        if let problem = packetLog?.problem {
            screen.error(problem.words)
            if loaded == .done { loaded = Ending(problem.code) }
        }
        let remembered = memory.write(screen)
        let ending = loaded == .done ? Ending(remembered) : loaded
        guard let archiver, let path = options.output.archiveFile else {
            return Signals.exitCode.map { Ending($0) } ?? ending
        }
        let written = Archive.write(archiver.archive, to: path, screen)
        return Signals.exitCode.map { Ending($0) } ?? (ending == .done ? Ending(written) : ending)
    }
}

/// Hints for an option of another tool that has a different meaning here.
enum OptionHints {
    /// `-c URL` and `-i LIST` have these meanings in wget.
    static func hint(_ groups: [Options]) -> String {
        let isAddress = { (text: String?) in text?.contains("://") ?? false }
        if groups.contains(where: { isAddress($0.memory.cookieOutput) }) {
            return ": -c FILE is curl's cookie jar; 'urlload wget -c URL' resumes a download as wget does"
        }
        return ""
    }
}
