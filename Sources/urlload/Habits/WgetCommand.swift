// SPDX-License-Identifier: Apache-2.0

// `urlload wget`: saves URLs to files that are named as wget names them, with wget's options.

enum WgetCommand {
    static let usage =
        """
        urlload wget [options] URL…

        Loads URLs into files here, with the options of wget. A name that is taken gets a number: FILE.1. What came of a
        file stays when a load ends early; -c goes on with it, and with what wget or curl has left. A file gets the time
        of Last-Modified; a 4xx or 5xx makes none.


        """ + Help.options(of: .wget) + "\n    Exit codes are those of urlload: urlload --help lists them.\n"

    static func run(_ arguments: [String]) async -> ExitCode {
        do throws(UsageError) {
            let groups = try ArgumentParser.parseAll(arguments, table: .wget)
            if groups.contains(where: \.wantsHelp) { return Console.print(usage) }
            return await LoadCommand.run(groups)
        } catch {
            return Console.usage(error.words, "urlload wget --help")
        }
    }
}
