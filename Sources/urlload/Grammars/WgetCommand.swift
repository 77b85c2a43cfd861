// SPDX-License-Identifier: Apache-2.0

// `urlload wget`: saves URLs to files that are named as wget names them, with wget's options.

enum WgetCommand {
    static let usage =
        """
        urlload wget [options] URL…

        Loads URLs into files here, with the options of wget. If FILE exists, FILE.1 is written. A URL without a scheme
        is loaded with https, one of this machine with http. A lost connection and a time-out are followed by up to 19
        further attempts, which continue a body that was cut. When a load ends early, its partial file is kept; -c
        resumes it, and partial files of wget and curl. Files get the time of Last-Modified; a response with status 4xx
        or 5xx is not saved.


        """ + Help.options(of: .wget) + "\nExit codes, those of wget. With several URLs: the lowest but 1.\n\n"
        + Help.exitCodes(WgetExit.allCases.map { ($0.rawValue, $0.meaning) })

    static func run(_ arguments: [String]) async -> Int32 {
        do throws(UsageError) {
            let groups = try ArgumentParser.parseAll(arguments, table: .wget)
            if groups.contains(where: \.wantsHelp) { return Console.print(usage).rawValue }
            return await LoadCommand.run(groups).number(in: .wget)
        } catch {
            _ = Console.usage(error.words, Grammar.wget.help)
            return WgetExit.usage.rawValue
        }
    }
}
