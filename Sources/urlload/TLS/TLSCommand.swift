// SPDX-License-Identifier: Apache-2.0

// In this folder: `urlload tls`

// `urlload tls HOST[:PORT]`: draws the certificate chain of a server and the result of its verification.

import FoundationEssentials
import URLLoading

enum TLSCommand {
    static let usage = """
        urlload tls [options] HOST[:PORT]

        Makes a TLS connection, sends no request over it, and draws the certificate chain, the result of its
        verification, and whether the server asks for a client certificate (--cert). Of a URL, host and port are
        used. Options are those of urlload --help security, --help limits and --help connection.
        Exit code 0 if the server is trusted, 60 if not.

        """

    static func run(_ arguments: [String]) async -> ExitCode {
        var options: Options
        do throws(UsageError) { options = try ArgumentParser.parse(arguments) } catch { return mistake(error.words) }
        if options.wantsHelp { return Console.print(usage) }
        guard options.urls.count == 1, let target = Target(options.urls[0]) else {
            return mistake("tls takes one HOST[:PORT]")
        }
        guard !options.tls.isInsecure else { return mistake("tls verifies the certificate, which -k would skip") }
        if let words = LoadCommand.askForPasswords(&options) { return mistake(words) }
        let screen = Screen(options)
        var configuration = Configuration(options, screen)
        if let code = await options.tls.apply(to: &configuration.tls, screen.message) { return code }
        return await inspect(target, configuration, screen)
    }

    struct Target: Equatable {
        let host: String
        let port: Int
        var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

        init?(_ text: String) {
            let rest = text.hasPrefix("https://") ? String(text.dropFirst(8)) : text
            guard !rest.contains("://"), let url = URL(string: "https://" + rest), let host = url.host(), !host.isEmpty
            else { return nil }
            self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
            port = url.port ?? 443
        }
    }

    private static func inspect(_ target: Target, _ configuration: Configuration, _ screen: Screen) async -> ExitCode {
        let seen = Seen()
        var decisions = Decisions()
        decisions.challenge = Decision { challenge in
            if let trust = challenge.serverTrust, !challenge.protectionSpace.isProxy { await seen.see(trust) }
            if let request = challenge.clientCertificate, !challenge.protectionSpace.isProxy { await seen.see(request) }
            return .performDefaultHandling
        }
        let session = Session(configuration, decisions: decisions)
        Signals.watch { session.invalidateAndCancel() }
        var failure: LoadError?
        let stream = session.streamTask(host: target.host, port: target.port, secure: true)
        do throws(LoadError) {
            stream.resume()
            try await stream.closeWrite()
        } catch { failure = error }
        session.invalidateAndCancel()
        await session.invalidated()
        if let code = Signals.exitCode { return code }
        guard let trust = await seen.trust ?? failure?.serverTrust else {
            guard let failure else { return .other }
            screen.message("\(target.authority): \(ErrorWords.make(Report.Failure(failure), in: .curl))")
            return ExitCode(failure)
        }
        let agreed = stream.metrics.transactions.last.flatMap(TLSDrawing.Agreed.init)
        let drawn = Console.print(TLSDrawing.make(trust, await seen.request, agreed, failure, now: .now))
        return failure.map { ExitCode($0) } ?? drawn
    }

    private actor Seen {
        private(set) var trust: ServerTrust?
        private(set) var request: ClientCertificateRequest?
        func see(_ request: ClientCertificateRequest) { self.request = request }
        func see(_ trust: ServerTrust) { self.trust = trust }
    }

    private static func mistake(_ words: String) -> ExitCode { Console.usage(words, "urlload tls --help") }
}
