// SPDX-License-Identifier: Apache-2.0

// A program with a background session, for the tests that kill it.
//
//     BackgroundProgram SOCKET IDENTIFIER submit URL FILE   hands a download over, and waits to be killed
//     BackgroundProgram SOCKET IDENTIFIER task URL FILE     resumes a task, and ends at once, normally
//     BackgroundProgram SOCKET IDENTIFIER handle LOG N      handles the events; is killed inside handler N
//     BackgroundProgram SOCKET IDENTIFIER classic LOG N     makes the calls of a delegate; is killed inside call N
//     BackgroundProgram SOCKET IDENTIFIER ask URL FILE      hands a download over, and never answers its challenges
//     BackgroundProgram SOCKET IDENTIFIER answer LOG N      the same as handle, and answers challenges
//     BackgroundProgram SOCKET IDENTIFIER relay URL FILE    downloads to FILE.within in the handler of event "first",
//                                                           and to FILE.after once missed events are handled
//     BackgroundProgram SOCKET IDENTIFIER hello - -         says hello, and prints whether the agent answers
//     BackgroundProgram - IDENTIFIER launch MANNER -        finds or starts the agent, while the ends of its children
//                                                           are "ignored", or all "reaped"

import FoundationEssentials
import Glibc
import URLLoading
import Synchronization
import URLLoadingIO
import URLLoadingWire

func note(_ line: String, _ path: String) {
    let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
    let bytes = Array((line + "\n").utf8)
    _ = write(descriptor, bytes, bytes.count)
    close(descriptor)
}

/// Keeps the ends of its children from the library, as programs do that ignore them, or reap them all.
func takeChildren(_ manner: String) {
    let reap: @convention(c) (Int32) -> Void = { _ in
        // The interrupted code may be about to read it.
        let error = errno
        while waitpid(-1, nil, WNOHANG) > 0 {}
        errno = error
    }
    if manner == "reaped" { signal(SIGCHLD, reap) } else { signal(SIGCHLD, SIG_IGN) }
}

/// The decisions of a mode: `nil` if it has none.
func decisions(for mode: String) -> Decisions? {
    guard ["ask", "answer"].contains(mode) else { return nil }
    var decisions = Decisions()
    decisions.challenge = Decision { challenge in
        note("asked \(challenge.protectionSpace.method)", "/dev/stdout")
        while mode == "ask" { try await Task.sleep(for: .seconds(60)) }
        return .use(Credential(user: "ada", password: "secret"))
    }
    return decisions
}

let arguments = CommandLine.arguments
guard arguments.count == 6 else { exit(64) }
if arguments[3] == "hello" {
    // Connects without a session, because a session refuses an agent of another user before the agent can refuse the
    // program.
    let socket = try LocalSocket.connect(to: arguments[1])
    let hello = AgentMessage.hello(.init(lowest: 1, highest: 1, program: "hello"))
    try? await socket.send(try hello.frame(id: 1).encoded(), .never)
    let answer = try? await socket.receive(atMost: 4096, .never)
    // Another user may write to the open file of the standard output, but may not open it again, as `note` does.
    print(answer?.bytes.isEmpty == false ? "answered" : "disconnected")
    exit(0)
}
if arguments[3] == "launch" {
    takeChildren(arguments[4])
    _ = try await AgentLauncher.open(AgentLauncher.facts())
    exit(0)
}
var configuration = Configuration.background(arguments[2])
// "-" leaves it to the launch plan.
if arguments[1] != "-" { configuration.background?.socket = arguments[1] }
configuration.cookies.storage = .none
configuration.hsts.storage = .none
let session = Session(configuration, decisions: decisions(for: arguments[3]))

switch arguments[3] {
case "submit", "ask":
    guard let url = URL(string: arguments[4]) else { exit(64) }
    let transfer = try await session.background.download(
        Request(url: url), to: URL(filePath: arguments[5]), options: BackgroundOptions(label: arguments[5]))
    note("accepted \(transfer.id)", "/dev/stdout")
    while true { pause() }
case "task":
    guard let url = URL(string: arguments[4]) else { exit(64) }
    session.downloadTask(Request(url: url), options: DownloadOptions(destination: URL(filePath: arguments[5]))).resume()
    exit(0)
case "relay":
    guard let url = URL(string: arguments[4]) else { exit(64) }
    // No test knows the process of a program that the agent has started.
    alarm(60)
    let place = arguments[5]
    let session = session
    let download: @Sendable (String) async throws -> Void = { label in
        try await session.background.download(
            Request(url: url), to: URL(filePath: "\(place).\(label)"), options: BackgroundOptions(label: label))
    }
    try await session.background.handleEvents {
        try? await download("after")
    } _: { event in
        switch event.transfer.label {
        case "first": try await download("within")
        case "within": session.finishTasksAndInvalidate()
        default: break
        }
    }
case "classic": receiveClassically(arguments[1], arguments[2], arguments[4], Int(arguments[5]) ?? 0)
default:
    let last = Int(arguments[5]) ?? 0
    let count = Atomic(0)
    let log = arguments[4]
    let session = session
    try await session.background.handleEvents {
        session.finishTasksAndInvalidate()
    } _: { event in
        note("begin \(event.transfer.label)", log)
        if count.add(1, ordering: .relaxed).newValue == last { kill(getpid(), SIGKILL) }
        note("end \(event.transfer.label)", log)
    }
}
