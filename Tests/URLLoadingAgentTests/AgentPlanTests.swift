// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import URLLoadingIO

@testable import URLLoading
@testable import URLLoadingAgent

@Suite struct AgentPlanTests {
    // MARK: The life of a transfer

    static let failed = TransferOutcome.failed(
        TransferError(LoadError(.cancelled, phase: .waiting, party: .local)))
    static let placing = TransferState.Placing(
        from: "/a", to: "/b", file: FilePlace(device: 1, inode: 2), outcome: failed)
    static let wait = TransferState.Wait(.backoff, until: 5)

    static func state(_ inputs: [TransferState.Input]) -> TransferState {
        var state = TransferState()
        for input in inputs { _ = state.receive(input) }
        return state
    }

    @Test(
        arguments: [
            ([], .start(now: 1), .begin, .running), ([.pause], .start(now: 1), .refuse, .queued),
            ([.start(now: 1)], .wait(wait), .none, .waiting(wait)),
            ([.start(now: 1), .wait(wait)], .wake, .none, .queued),
            ([.start(now: 1)], .park(question: "q"), .none, .parked(question: "q")),
            ([.start(now: 1), .park(question: "q")], .answered, .none, .queued),
            ([.start(now: 1)], .place(placing), .rename(placing), .placing(placing)),
            ([.start(now: 1), .place(placing)], .restart, .rename(placing), .placing(placing)),
            ([.start(now: 1), .place(placing)], .cancel(failed), .refuse, .placing(placing)),
            ([.start(now: 1), .place(placing)], .finish(failed), .announce(failed), .finished(failed)),
            ([.start(now: 1)], .finish(failed), .announce(failed), .finished(failed)),
            ([.start(now: 1)], .cancel(failed), .stop, .finished(failed)),
            ([], .cancel(failed), .announce(failed), .finished(failed)),
            ([.start(now: 1)], .pause, .stop, .running), ([.start(now: 1)], .yield, .none, .queued),
            ([.start(now: 1)], .restart, .none, .queued), ([.start(now: 1)], .start(now: 2), .refuse, .running),
            ([.cancel(failed)], .acknowledge, .remove, .delivered),
            ([.cancel(failed)], .finish(failed), .refuse, .finished(failed)),
            ([.cancel(failed)], .restart, .refuse, .finished(failed)), ([], .finish(failed), .refuse, .queued),
        ] as [([TransferState.Input], TransferState.Input, TransferState.Action, TransferState.Phase)])
    func `each input leads to one state and one action`(
        _ before: [TransferState.Input], _ input: TransferState.Input, _ action: TransferState.Action,
        _ phase: TransferState.Phase
    ) {
        var state = Self.state(before)
        let done = state.receive(input)
        #expect(done == action)
        #expect(state.phase == phase)
        // The state that is written equals the state that is read.
        #expect(TransferCoding.decode(TransferState.self, TransferCoding.encode(state)) == state)
    }

    @Test func `Consecutive failures are counted until there is progress; the time of the first attempt is kept`() {
        var state = Self.state([.start(now: 7), .wait(Self.wait), .wake, .start(now: 9), .wait(Self.wait), .wake])
        #expect(state.failures == 2 && state.attempts == 2 && state.firstAttempt == 7)
        _ = state.receive(.start(now: 11))
        _ = state.receive(.progress)
        #expect(state.failures == 0 && state.attempts == 3)
    }

    @Test(
        arguments: [
            // The calendar is set forward or back by a day: a length of time stays what it was.
            (86_400_000_000_000, 0, "b1", 10_000_000_000), (-86_400_000_000_000, 0, "b1", 10_000_000_000),
            (4_000_000_000, 4_000_000_000, "b1", 6_000_000_000),
            // After another start of the system the calendar is all there is.
            (4_000_000_000, -50, "b2", 6_000_000_000),
        ] as [(Int64, Int64, String, Int64)])
    func `a wait is as long as it was meant, whatever becomes of the calendar`(
        _ wall: Int64, _ boot: Int64, _ identity: String, _ left: Int64
    ) {
        var wait = TransferState.Wait(.backoff, until: 1_000 + 10_000_000_000)
        wait.makeRelative(wall: 1_000, boot: 500, "b1")
        #expect(wait.end(identity).left(wall: 1_000 + wall, boot: 500 + boot) == left)
    }

    // MARK: Retries

    static func facts(
        now: Int64 = 0, began: Int64 = 0, timeout: Int64? = nil, failures: Int = 1, mayRepeat: Bool = true
    ) -> TransferRetryPlan.Facts {
        .init(now: now, began: began, resourceTimeout: timeout, failures: failures, share: 1, mayRepeat: mayRepeat)
    }

    static func error(_ reason: LoadError.Reason) -> LoadError { LoadError(reason, phase: .waiting, party: .system) }

    @Test(arguments: [(1, 1), (2, 2), (5, 16), (10, 512), (11, 600), (500, 600)] as [(Int, Int64)])
    func `Network failures are retried without limit, with delays that double up to ten minutes`(
        _ failures: Int, _ seconds: Int64
    ) {
        let plan = TransferRetryPlan.after(Self.error(.connectionLost), Self.facts(failures: failures))
        #expect(plan == .wait(.init(.backoff, until: seconds * 1_000_000_000, detail: "connectionLost")))
    }

    @Test func `The resource timeout ends the retries, and no delay exceeds it`() {
        let error = Self.error(.unreachable)
        #expect(
            TransferRetryPlan.after(error, Self.facts(now: 10, began: 0, timeout: 10))
                == .finish(.resourceTimeout, detail: "unreachable"))
        #expect(
            TransferRetryPlan.after(error, Self.facts(now: 5, began: 0, timeout: 10))
                == .wait(.init(.backoff, until: 10, detail: "unreachable")))
    }

    @Test func `Times without sense are no overflow`() {
        #expect(Self.facts(now: 0, began: 1_700_000_000_000_000_000, timeout: .max).timeLeft == .nanoseconds(Int64.max))
        #expect(Self.facts(now: .max, began: .min, timeout: .min).timeLeft == .nanoseconds(1))
        let late = TransferRetryPlan.after(Self.error(.unreachable), Self.facts(now: .max, began: .min, timeout: 1))
        #expect(late == .finish(.resourceTimeout, detail: "unreachable"))
        for moment in [Int64.min, .max] {
            var wait = TransferState.Wait(.notBefore, until: moment)
            #expect(wait.end("b1").left(wall: 1, boot: 0) == (moment < 0 ? moment : moment - 1))
            wait.makeRelative(wall: 1, boot: 0, "b1")
            #expect(wait.end("b1").left(wall: 0, boot: 2) == (moment < 0 ? moment : moment - 3))
        }
    }

    @Test func `A request that may have been carried out is not repeated, and the error says so`() {
        let plan = TransferRetryPlan.after(Self.error(.connectionLost), Self.facts(mayRepeat: false))
        guard case .finish(.connectionLost, let detail) = plan else {
            Issue.record("\(plan)")
            return
        }
        #expect(detail.contains("may have been carried out"))
    }

    @Test(arguments: [LoadError.Reason.certificateUntrusted, .badURL, .tooManyRedirects, .notHTTP])
    func `Failures that a retry would repeat are final`(_ reason: LoadError.Reason) {
        #expect(TransferRetryPlan.after(Self.error(reason), Self.facts()) == .finish(reason, detail: ""))
    }

    @Test(arguments: [(429, true), (503, true), (500, false), (404, false)] as [(Int, Bool)])
    func `429 and 503 with Retry-After are waited for; other statuses are results`(_ status: Int, _ waits: Bool) {
        let plan = TransferRetryPlan.after(status: status, retryAfter: 3, Self.facts())
        #expect((plan != nil) == waits)
        #expect(
            TransferRetryPlan.after(status: 503, retryAfter: .max, Self.facts(timeout: 1_000_000_000)) == nil)
    }

    // MARK: Turns

    static func candidate(
        _ id: String, _ identifier: String = "a", host: String = "h", priority: UInt8 = 25, number: Int64 = 0,
        isDiscretionary: Bool = false, isResumable: Bool = true
    ) -> SchedulePlan.Candidate {
        .init(
            id: id, identifier: identifier, host: host, priority: priority, number: number,
            isDiscretionary: isDiscretionary, isResumable: isResumable)
    }

    @Test func `Transfers take turns by identifier, then by priority, then by age`() {
        let ready = [
            Self.candidate("a1", number: 1), Self.candidate("a2", priority: 40, number: 2),
            Self.candidate("a3", number: 3),
            Self.candidate("b1", "b", number: 4),
        ]
        #expect(SchedulePlan.make(ready: ready, running: []).begins == ["a2", "b1", "a1", "a3"])
        #expect(SchedulePlan.make(ready: ready, running: [], last: "a").begins == ["b1", "a2", "a1", "a3"])
    }

    @Test func `Limits apply to a host, an identifier and the agent`() {
        var limits = SchedulePlan.Limits()
        (limits.host, limits.identifier, limits.agent) = (2, 3, 4)
        let ready =
            (0..<4).map { Self.candidate("h\($0)", number: Int64($0)) }
            + (4..<8).map { Self.candidate("g\($0)", host: "g", number: Int64($0)) }
            + (8..<12).map { Self.candidate("b\($0)", "b", host: "k\($0)", number: Int64($0)) }
        let plan = SchedulePlan.make(ready: ready, running: [], limits: limits)
        #expect(plan.begins == ["h0", "b8", "h1", "b9"])
        let full = SchedulePlan.make(
            ready: Array(ready[..<4]), running: [Self.candidate("r1"), Self.candidate("r2")], limits: limits)
        #expect(full.begins.isEmpty && full.yields.isEmpty)
    }

    @Test func `The least urgent resumable transfer is suspended for a more urgent one`() {
        var limits = SchedulePlan.Limits()
        limits.host = 2
        let running = [
            Self.candidate("r1", priority: 10, number: 1, isResumable: false),
            Self.candidate("r2", priority: 20, number: 2),
        ]
        let urgent = [Self.candidate("u", priority: 50, number: 9)]
        #expect(SchedulePlan.make(ready: urgent, running: running, limits: limits).yields == ["r2"])
        let equal = [Self.candidate("u", priority: 20, number: 9)]
        #expect(SchedulePlan.make(ready: equal, running: running, limits: limits).yields.isEmpty)
    }

    @Test func `Discretionary transfers wait for good conditions`() {
        let ready = [Self.candidate("d", isDiscretionary: true), Self.candidate("u", number: 1)]
        #expect(SchedulePlan.make(ready: ready, running: [], allowsDiscretionary: false).begins == ["u"])
        #expect(SchedulePlan.make(ready: ready, running: []).begins == ["d", "u"])
    }

    // MARK: Waking

    @Test func `A program is started once at a time, and less often while it acknowledges nothing`() {
        var plan = WakePlan()
        let second: Int64 = 1_000_000_000
        var seen: [Bool] = []
        // The program runs, ends, and is started again after twice the delay.
        for (now, ends) in [(0, false), (100, true), (100, false)] as [(Int64, Bool)] {
            seen.append(plan.hasEvents(now: now * second))
            if ends { plan.ended() }
        }
        #expect(seen == [true, false, true])
        plan.ended()
        seen = [plan.hasEvents(now: 102 * second - 1), plan.hasEvents(now: 102 * second)]
        #expect(seen == [false, true])
        plan.ended()
        var now = 200 * second
        for _ in 0..<40 {
            now += WakePlan.longest
            _ = plan.hasEvents(now: now)
            plan.ended()
        }
        seen = [plan.hasEvents(now: now + WakePlan.longest - 1), plan.hasEvents(now: now + WakePlan.longest)]
        #expect(seen == [false, true])
        plan.ended()
        plan.acknowledged()
        seen = [plan.next == nil, plan.hasEvents(now: now)]
        #expect(seen == [true, true])
    }

    @Test func `The table lists the most urgent transfers of each host, whatever becomes of them`() throws {
        var table = TransferTable()
        func draw(_ step: Int, _ count: Int) -> Int {
            Int((UInt32(truncatingIfNeeded: step) &* 2_654_435_761) >> 8) % count
        }
        for step in 0..<2_000 {
            let id = "t\(draw(step, 40))"
            let kind = draw(step + 7, 9)
            if table[id] == nil {
                var order = TransferOrder(kind: .download, shownURL: "", method: "GET", fields: [], created: 0)
                order.isDiscretionary = kind == 0
                if kind == 1 { order.earliestBegin = 5 }
                let url = "http://host\(draw(step + 3, 3)).example/"
                table[id] = Transfer(
                    id: id, claim: TransferClaim(number: Int64(step), epoch: 1), identifier: "i\(draw(step + 5, 2))",
                    order: order,
                    secrets: TransferSecrets(url: url, fields: []))
            }
            switch kind {
            case 0...3: break
            case 4: table[id]?.order.priority = UInt8(draw(step + 11, 5))
            case 5: _ = table[id]?.state.receive(.start(now: 1))
            case 6: _ = table[id]?.state.receive(draw(step + 13, 2) == 0 ? .pause : .yield)
            case 7: _ = table[id]?.state.receive(draw(step + 13, 2) == 0 ? .resume : .wake)
            default: table[id] = nil
            }
            let lanes = Dictionary(grouping: table.filter(\.state.isReady)) {
                "\($0.identifier) \($0.host) \($0.order.isDiscretionary)"
            }
            let first = lanes.values.flatMap { lane in
                lane.sorted { ($1.order.priority, $0.number) < ($0.order.priority, $1.number) }.prefix(2).map(\.id)
            }
            #expect(table.ready(atMost: 2).sorted() == first.sorted())
            let waiting = table.filter { if case .waiting = $0.state.phase { true } else { false } }
            #expect(table.waits.keys.sorted() == waiting.map(\.id).sorted())
            #expect(table.activeCount == table.count(where: \.state.needsAgent) && table.overCount == 0)
        }
        #expect(table.count > 0)
    }

    // MARK: The place of the agent

    static func launch(
        _ environment: [String: String] = [:], sockets: Set<String> = [],
        executables: Set<String> = ["/usr/bin/url-loading-agent"]
    ) -> LaunchPlan {
        let standard = ["HOME": "/home/u", "PATH": "/bin:/usr/bin"]
        return LaunchPlan.make(
            .init(
                environment: standard.merging(environment) { $1 }, user: 7, userName: "u", programFolder: "/opt/p",
                isSocket: { sockets.contains($0) }, isExecutable: { executables.contains($0) }))
    }

    @Test func `The agent is reached at its socket, else through a service manager, else started as a process`() {
        let own = "/run/user/7/url-loading/agent.sock"
        let spawned = "/home/u/.local/state/url-loading/agent.sock"
        let system = "/run/url-loading/u/agent.sock"
        let manager = "/run/user/7/systemd/private"
        let agent = "/usr/bin/url-loading-agent"
        #expect(Self.launch(["URLLOADING_AGENT_SOCKET": "/s"], sockets: [own]) == .named(socket: "/s"))
        #expect(Self.launch(sockets: [own, system, manager]) == .listening(socket: own))
        #expect(Self.launch(sockets: [system, manager]) == .listening(socket: system))
        #expect(Self.launch(sockets: [manager]) == .userService(socket: own, executable: agent))
        #expect(Self.launch(sockets: [manager, spawned]) == .spawned(socket: spawned, executable: agent))
        #expect(Self.launch() == .spawned(socket: spawned, executable: agent))
        #expect(
            Self.launch(["XDG_RUNTIME_DIR": "/r"], sockets: ["/r/url-loading/agent.sock"])
                == .listening(socket: "/r/url-loading/agent.sock"))
        #expect(Self.launch(["XDG_STATE_HOME": "/x"]).socket == "/x/url-loading/agent.sock")
    }

    @Test func `The executable is the configured one, else the one beside the program, else the one in PATH`() {
        let all: Set<String> = ["/opt/p/url-loading-agent", "/usr/bin/url-loading-agent", "/n"]
        func executable(_ plan: LaunchPlan) -> String? { if case .spawned(_, let path) = plan { path } else { nil } }
        #expect(executable(Self.launch(["URLLOADING_AGENT": "/n"], executables: all)) == "/n")
        #expect(executable(Self.launch(executables: all)) == "/opt/p/url-loading-agent")
        #expect(executable(Self.launch()) == "/usr/bin/url-loading-agent")
        guard case .impossible = Self.launch(["URLLOADING_AGENT": "/gone"], executables: all) else {
            Issue.record("a named executable that is not there is no reason to take another")
            return
        }
        guard case .impossible = Self.launch(executables: []) else {
            Issue.record("no executable")
            return
        }
    }

    @Test(
        arguments: [
            ("0::/\n", false, false, .untilReboot),
            ("0::/system.slice/app.service\n", true, true, .untilStop(unit: "app.service")),
            ("0::/user.slice/user-7.slice/session-3.scope\n", true, false, .untilLogout),
            (
                "0::/user.slice/user-7.slice/user@7.service/app.slice/url-loading-agent.service", false, true,
                .untilLogout
            ),
            ("0::/user.slice/user-7.slice/user@7.service/app.slice/url-loading-agent.service", true, true, .reboot),
            (
                "0::/user.slice/user-7.slice/user@7.service/app.slice/url-loading-agent.service", true, false,
                .untilReboot
            ),
            (
                "0::/user.slice/user-7.slice/user@7.service/app.slice/sync.service", true, true,
                .untilStop(unit: "sync.service")
            ),
            ("0::/system.slice/system-url\\x2dloading.slice/url-loading-agent@www.service", false, true, .reboot),
            ("", true, true, .untilReboot),
        ] as [(String, Bool, Bool, BackgroundSurvival)])
    func `what transfers outlive is read from the control group`(
        _ group: String, _ lingers: Bool, _ isEnabled: Bool, _ survival: BackgroundSurvival
    ) {
        #expect(SurvivalPlan.make(group: group, lingers: lingers, isEnabled: isEnabled) == survival)
        #expect(BackgroundSurvival(text: survival.text) == survival)
    }

    // MARK: The command line

    @Test func `The options of the agent are parsed`() {
        func parse(_ words: String...) -> AgentOptions? { try? AgentOptions.parse(words).get() }
        #expect(parse()?.idle == 60)
        #expect(parse("--foreground")?.idle == .some(nil))
        #expect(
            parse("--socket", "/s", "--folder", "/f", "--listener", "3", "--idle", "0.5")
                == AgentOptions(socket: "/s", listener: 3, folder: "/f", idle: 0.5))
        #expect(
            parse("--socket", "s") == nil && parse("--listener", "-1") == nil && parse("x") == nil
                && parse("--idle") == nil)
    }
}
