// SPDX-License-Identifier: Apache-2.0

// `urlload ws URL`: sends lines of input as messages, writes received messages as lines.

import FoundationEssentials
import URLLoading

enum WebSocketCommand {
    static let usage = """
        urlload ws [options] URL

        Opens a WebSocket. Each line of standard input is sent as a text message, each received message is written
        as a line. At the end of the input (Ctrl-D) the socket is closed with 1000, and messages that still arrive
        are written until the server has closed, too.

          --binary          input is sent as it is read, in binary messages; received messages are written unchanged
          --wait[=SECONDS]  at the end of the input receive until the server closes, or for this time: for pipes
          --ping SECONDS    send a ping at this interval
          --protocol NAME   offer a subprotocol; several times for several, preferred first
          --compress        offer compression

        Other options are -H and those of urlload --help authentication, --help security, --help limits and
        --help connection. The URL's scheme is ws or wss; without a scheme it is wss, for this machine ws.
        Exit code 0 if both sides closed, in either order; 22 if the server refused to open a WebSocket; 56 if it closed
        with a code for an error.

        """

    static func run(_ arguments: [String]) async -> ExitCode {
        var own = WebSocketArguments()
        var options: Options
        do throws(UsageError) {
            options = try ArgumentParser.parse(try own.take(arguments))
        } catch { return mistake(error.words) }
        if options.wantsHelp { return Console.print(usage) }
        guard options.urls.count == 1, let url = WebSocketArguments.url(options.urls[0]) else {
            return mistake("ws takes one URL")
        }
        if let words = LoadCommand.askForPasswords(&options) { return mistake(words) }
        let screen = Screen(options)
        if options.tls.isInsecure {
            screen.message(Help.insecureWarning)
        }
        var configuration = Configuration(options, screen)
        if let code = await options.tls.apply(to: &configuration.tls, screen.message) { return code }
        let session = Session(configuration, decisions: options.login.signing)
        return await talk(Request(url: url, headers: options.request.fields), own, session, screen)
    }

    private static func talk(
        _ request: Request, _ own: WebSocketArguments, _ session: Session, _ screen: Screen
    ) async -> ExitCode {
        let socket = session.webSocketTask(request, protocols: own.protocols, options: own.options)
        Signals.watch { session.invalidateAndCancel() }
        socket.resume()
        let code = await withTaskGroup(of: ExitCode?.self) { group in
            group.addTask { await process(socket, own, screen) }
            group.addTask {
                await sendInput(socket, own)
                return nil
            }
            // The end of receiving ends sending too; the end of sending does not end receiving.
            for await code in group {
                guard let code else { continue }
                group.cancelAll()
                return code
            }
            return .other
        }
        session.invalidateAndCancel()
        await session.invalidated()
        return Signals.exitCode ?? code
    }

    private static func sendInput(_ socket: WebSocketTask, _ own: WebSocketArguments) async {
        let input = StandardInput(lines: !own.isBinary)
        while let bytes = await input.next() {
            let message: WebSocketMessage =
                own.isBinary ? .data(Data(bytes)) : .text(String(decoding: bytes, as: UTF8.self))
            do throws(LoadError) { try await socket.send(message) } catch { return }
        }
        // A socket that is not open yet cannot be closed, only cancelled.
        do throws(LoadError) { _ = try await socket.opened } catch { return }
        // Cancelled when the server has closed.
        if let limit = own.wait { try? await Task.sleep(for: limit) }
        if !Task.isCancelled { await socket.close() }
    }

    private static func process(_ socket: WebSocketTask, _ own: WebSocketArguments, _ screen: Screen) async -> ExitCode
    {
        do {
            for try await message in socket.messages {
                try own.bytes(of: message).withUnsafeBufferPointer { bytes throws(OutputError) in
                    try FileDescriptor.standardOutput.write(UnsafeRawBufferPointer(bytes))
                }
            }
        } catch let error as OutputError {
            socket.cancel()
            return error.code
        } catch {
            guard Signals.exitCode == nil, let error = error as? LoadError else { return .interrupted }
            return printFailure(error, socket.url, screen)
        }
        // Waits for the server's close frame.
        let ending = await socket.ended()
        return ending.error.map { printFailure($0, socket.url, screen) } ?? .done
    }

    private static func printFailure(_ error: LoadError, _ url: URL, _ screen: Screen) -> ExitCode {
        screen.message("\(AddressText.shown(url)): \(ErrorWords.summary(error) ?? "\(error)")")
        return ExitCode(error)
    }

    private static func mistake(_ words: String) -> ExitCode { Console.usage(words, "urlload ws --help") }
}
