// What the command does without arguments: shows itself.

enum Demonstration {
    static func run() async -> ExitCode {
        try? FileDescriptor.standardError.write("urlload: no URL\nurlload --help lists the options\n")
        return .usage
    }
}
