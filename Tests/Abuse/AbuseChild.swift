// SPDX-License-Identifier: Apache-2.0

// One random program: performs operations chosen by its seed, waits for the balance of its ledger, and leaves.

import Foundation
import Synchronization
import URLLoadingCompatibility

enum AbuseChild {
    /// The exit code of a child that has found a failure.
    static let failed: Int32 = 70
    /// The exit code of a child that Dispatch has ended for lack of descriptors, or stopped for lack of threads.
    static let endedByDispatch: Int32 = 71
    /// No ticket may be open for longer than this without any other one being opened or closed. All loads have timeouts
    /// of a few seconds.
    private static let patience = 20

    static func run(_ arguments: AbuseArguments) throws {
        guard let servers = arguments.servers, let authority = arguments.authority, let seed = arguments.seed else {
            throw AbuseFailure("a child needs --seed, --servers and --authority")
        }
        setLimits(arguments)
        URLSession.misuseHandler = { _ in }
        let ledger = Ledger(counter: arguments.counter)
        let folder = FileManager.default.temporaryDirectory.appending(path: "child-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let world = try World(servers, authority: authority, ledger, folder: folder)

        watch(ledger, hasFewThreads: arguments.threads != nil)
        if let leave = arguments.leave {
            let thread = Thread {
                usleep(UInt32(leave) * 1_000)
                exit(0)
            }
            thread.start()
        }
        let done = Flag()
        Task.detached {
            await perform(arguments, seed, world)
            done.raise()
        }
        // The main queue and the main actor run here. Not dispatchMain, which never returns: some children return from
        // main.
        while !done.isRaised { _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01)) }
        let violations = ledger.violations
        say("operations \(ledger.completed); \(ledger.errorsLine)\nheld: \(ledger.heldLine)")
        if !violations.isEmpty {
            complain("abuse: \(violations.count) violations")
            exit(failed)
        }
        if arguments.end == "exit" { exit(0) }
    }

    private static func perform(_ arguments: AbuseArguments, _ seed: UInt64, _ world: World) async {
        let ledger = world.ledger
        var dice = Dice(seed: seed)
        var left = arguments.operations ?? 1_000
        while left > 0 {
            var own = Dice(seed: dice.next())
            let operation = Operation.chosen(&own)
            // The other operations stay the same.
            if arguments.without.contains(operation.name) {
                left -= 1
                continue
            }
            if !arguments.only.isEmpty, !arguments.only.contains(operation.name) { continue }
            left -= 1
            await ledger.room(arguments.inFlight)
            let ticket = ledger.open("\(operation.name), seed \(own.seed)")
            Task.detached { [own] in
                var own = own
                await operation.run(world, &own)
                ledger.count()
                ticket.close()
            }
        }
        await ledger.room(1)
        await world.end()
    }

    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isRaised: Bool { value.load(ordering: .acquiring) }
        func raise() { value.store(true, ordering: .releasing) }
    }

    /// Ends the process if the ledger stands still. A thread, because the threads of Swift's pool may all be blocked.
    private static func watch(_ ledger: Ledger, hasFewThreads: Bool) {
        let thread = Thread {
            var (last, still) = (ledger.changes, 0)
            while true {
                sleep(1)
                let changes = ledger.changes
                still = changes == last ? still + 1 : 0
                last = changes
                if still >= patience { giveUp(ledger, hasFewThreads) }
            }
        }
        thread.start()
    }

    private static func giveUp(_ ledger: Ledger, _ hasFewThreads: Bool) -> Never {
        let open = ledger.openLabels
        complain("abuse: nothing happened for \(patience) s, and \(open.count) completions are missing:")
        for label in open.prefix(40) { complain("abuse: never completed: \(label)") }
        for resource: __rlimit_resource_t in [descriptorLimit, threadLimit] {
            var limit = rlimit()
            getrlimit(resource, &limit)
            limit.rlim_cur = limit.rlim_max
            setrlimit(resource, &limit)
        }
        let threads = Backtraces.of(getpid())
        complain(threads)
        // Dispatch waits inside of the calls that need another thread until it gets one. With a limit its workers may
        // all wait in this way, each for a thread beyond the limit; no queue of the process runs then.
        let isDispatch = hasFewThreads && threads.contains("_dispatch_temporary_resource_shortage")
        _exit(isDispatch ? endedByDispatch : failed)
    }

    // MARK: Limits

    // RLIMIT_NPROC, RLIMIT_NOFILE and RLIMIT_AS, which glibc's module does not give as numbers of this type.
    private static let threadLimit = __rlimit_resource_t(6)
    private static let descriptorLimit = __rlimit_resource_t(7)
    private static let memoryLimit = __rlimit_resource_t(9)

    /// Limits the process itself, because a limit set before could keep the Swift runtime from starting. The number of
    /// cores is set by the driver, before the runtime reads it.
    private static func setLimits(_ arguments: AbuseArguments) {
        // CoreFoundation ends the process if its run loop gets no descriptors, and so does Dispatch for its timers:
        // that is none of the library's doing, so both get theirs first.
        _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.001))
        let timer = DispatchSemaphore(value: 0)
        later(1) { timer.signal() }
        timer.wait()
        if let descriptors = arguments.descriptors {
            forgiveDispatch()
            limit(descriptorLimit, rlim_t(descriptors))
        }
        // Generous on purpose: Swift ends the process when malloc returns NULL, which is none of the library's doing.
        // The limit finds address space that grows without bounds.
        if let memory = arguments.memory { limit(memoryLimit, rlim_t(memory) << 20) }
        // The kernel counts the threads of a user, and exempts root: the driver has made the child a user of its own.
        if let threads = arguments.threads, geteuid() != 0 { limit(threadLimit, rlim_t(threads)) }
    }

    /// Once a second Dispatch opens a file of /proc for each of its threads (`_dispatch_workq_monitor_pools`), and
    /// traps if that fails: a process of Swift in which no descriptor is free is ended by Dispatch, whatever the
    /// library does. Such an end has an exit code of its own; other traps keep their signal.
    private static func forgiveDispatch() {
        // Read to its end: the size of such a file is 0.
        let data = try? FileHandle(forReadingAtPath: "/proc/self/maps")?.readToEnd()
        let maps = String(decoding: data ?? Data(), as: UTF8.self)
        for line in maps.split(separator: "\n") where line.contains("r-xp") && line.contains("libdispatch") {
            let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard ends.count == 2 else { continue }
            dispatchBegin.store(ends[0], ordering: .relaxed)
            dispatchEnd.store(ends[1], ordering: .relaxed)
        }
        var action = sigaction()
        action.sa_flags = SA_SIGINFO
        action.__sigaction_handler.sa_sigaction = { number, information, _ in
            // The handler runs on the thread whose call has failed.
            let failure = errno
            let address = UInt(bitPattern: information?.pointee._sifields._sigfault.si_addr)
            if failure == EMFILE, address >= AbuseChild.dispatchBegin.load(ordering: .relaxed),
                address < AbuseChild.dispatchEnd.load(ordering: .relaxed)
            {
                _exit(AbuseChild.endedByDispatch)
            }
            signal(number, SIG_DFL)
            raise(number)
        }
        sigaction(SIGILL, &action, nil)
    }

    /// The addresses of Dispatch's code.
    private static let dispatchBegin = Atomic<UInt>(0)
    private static let dispatchEnd = Atomic<UInt>(0)

    private static func limit(_ resource: __rlimit_resource_t, _ value: rlim_t) {
        var limit = rlimit()
        getrlimit(resource, &limit)
        // Below the hard limit, so that the debugger of a child that gives up gets what it needs.
        limit.rlim_cur = min(value, limit.rlim_max)
        if setrlimit(resource, &limit) != 0 { complain("abuse: limit \(resource) was not set") }
    }
}

enum Backtraces {
    /// Returns the backtraces of all threads of a process if gdb is installed. Blocks.
    static func of(_ process: pid_t) -> String {
        let places: [String] = ["/usr/bin/gdb", "/usr/local/bin/gdb"]
        guard let debugger = places.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
            return "no backtraces: gdb is not installed"
        }
        let place = FileManager.default.temporaryDirectory.appending(path: "backtraces-\(process)-\(getpid())").path
        defer { unlink(place) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, place, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        let words: [String] = [debugger, "-batch", "-nx", "-p", "\(process)", "-ex", "thread apply all bt 30"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for word in arguments { free(word) } }
        var identifier: pid_t = 0
        guard posix_spawn(&identifier, debugger, &actions, nil, &arguments, environ) == 0 else {
            return "no backtraces: gdb did not start"
        }
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        return (try? String(contentsOfFile: place, encoding: .utf8)) ?? "no backtraces"
    }
}
