// SPDX-License-Identifier: Apache-2.0

// In this folder: `urlload cache`

// `urlload cache`: lists, shows, explains and removes stored responses. It makes no connection.

import FoundationEssentials
import URLLoading

enum CacheCommand {
    static let usage = """
        urlload cache ls   --cache DIR [--json] [--show-secrets] [URL…]
        urlload cache show --cache DIR URL…
        urlload cache why  --cache DIR URL…
        urlload cache rm   --cache DIR [--all | --older SECONDS | URL…]

        ls lists the stored responses: status, size, age, place of the body, and URL; with --json an object on
        each line. Values of parameters such as access_token are shown only with --show-secrets.
        show writes the head and the body of the response stored for a URL to standard output. why says how a GET
        would be answered now, and why. rm removes the responses for a URL, those received longer ago than
        SECONDS, or all. A URL that ends in * matches every URL with that beginning.
        Exit code 0; 22 if no stored response matches; 23 if the cache cannot be used.

        """

    static func run(_ arguments: [String]) -> ExitCode {
        let options: CacheOptions
        do throws(UsageError) { options = try CacheOptions(arguments) } catch {
            try? FileDescriptor.standardError.write("urlload: \(error.words)\nurlload cache --help says more\n")
            return .usage
        }
        do throws(OutputError) {
            guard let verb = options.verb else {
                try FileDescriptor.standardOutput.write(usage)
                return .done
            }
            let cache = ResponseCache(directory: URL(filePath: options.directory, directoryHint: .isDirectory))
            let count = try perform(verb, options, cache)
            if let problem = cache.problem {
                try FileDescriptor.standardError.write("urlload: \(options.directory): \(problem)\n")
                if problem.reason != .damaged { return .write }
            }
            return count > 0 || options.urls.isEmpty ? .done : .httpError
        } catch {
            return error.code
        }
    }

    /// Returns the number of matching responses.
    private static func perform(_ verb: CacheOptions.Verb, _ options: CacheOptions, _ cache: ResponseCache)
        throws(OutputError) -> Int
    {
        switch verb {
        case .list: try list(options, cache)
        case .show: try show(options, cache)
        case .why: try why(options, cache)
        case .remove: remove(options, cache)
        case .exercise: try exercise(options, cache)
        }
    }

    private static func found(_ options: CacheOptions, _ cache: ResponseCache) -> [ResponseCache.Entry] {
        var entries: [ResponseCache.Entry] = []
        cache.forEachEntry { entry in
            if options.wants(entry.url) { entries.append(entry) }
            return true
        }
        return entries
    }

    private static func list(_ options: CacheOptions, _ cache: ResponseCache) throws(OutputError) -> Int {
        let now = Date().timeIntervalSince1970
        let entries = found(options, cache)
        let lines =
            options.printsJSON
            ? entries.map { $0.json(now, showsSecrets: options.showsSecrets).description }
            : CacheLines.make(
                entries, now: now, columns: FileDescriptor.standardOutput.terminalSize?.columns,
                showsSecrets: options.showsSecrets)
        for line in lines { try FileDescriptor.standardOutput.write(line + "\n") }
        return entries.count
    }

    private static func show(_ options: CacheOptions, _ cache: ResponseCache) throws(OutputError) -> Int {
        var count = 0
        for entry in found(options, cache) {
            guard let data = cache.data(of: entry) else { continue }
            count += 1
            try FileDescriptor.standardOutput.write(CacheLines.head(entry))
            var failure: OutputError?
            data.withUnsafeBytes { bytes in
                do throws(OutputError) { try FileDescriptor.standardOutput.write(bytes) } catch { failure = error }
            }
            if let failure { throw failure }
        }
        return count
    }

    private static func why(_ options: CacheOptions, _ cache: ResponseCache) throws(OutputError) -> Int {
        var count = 0
        for text in options.urls {
            guard let url = URL(string: text), let plan = cache.plan(for: Request(url: url)) else { continue }
            count += 1
            try FileDescriptor.standardOutput.write(
                "\(options.showsSecrets ? text : AddressText.inMessage(text)): \(plan)\n")
        }
        return count
    }

    private static func remove(_ options: CacheOptions, _ cache: ResponseCache) -> Int {
        var count = 0
        if options.removesAll {
            cache.removeAll()
            count = 1
        } else {
            let limit = options.olderThan.map { Date().timeIntervalSince1970 - $0 } ?? .infinity
            for entry in found(options, cache) where entry.received < limit {
                cache.remove(entry)
                count += 1
            }
        }
        cache.flush()
        return count
    }

    /// For tests that end the process at a random moment: stores responses whose bodies say what they must contain, and
    /// prints the number of each that is written durably.
    private static func exercise(_ options: CacheOptions, _ cache: ResponseCache) throws(OutputError) -> Int {
        let prefix = options.urls.first ?? "http://exercise.test/"
        for number in 0..<max(0, options.count) {
            guard let url = URL(string: "\(prefix)\(number)") else { return number }
            let size = [100, 5_000, 40_000, 300_000][number % 4]
            let data = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number) })
            let response = Response(url: url, http: HTTPHead(status: .ok, headers: ["X-Number": "\(number)"]))
            cache.store(CachedResponse(response: response, data: data), for: Request(url: url))
            guard number % 5 == 4 else { continue }
            cache.flush()
            try FileDescriptor.standardOutput.write("\(number)\n")
        }
        cache.flush()
        return options.count
    }
}
