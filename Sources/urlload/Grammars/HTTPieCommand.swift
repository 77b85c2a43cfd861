// SPDX-License-Identifier: Apache-2.0

// In this folder: the options of wget and httpie

// `urlload http [METHOD] URL [ITEM…]`: builds a request as httpie does.

import FoundationEssentials
import Glibc
import URLLoading

enum HTTPieCommand {
    static let usage =
        """
        urlload http [options] [METHOD] URL [ITEM…]

        Builds a request from items, as httpie does, and shows the response: on a terminal coloured and with its
        head, elsewhere the body alone. METHOD is POST if there is a body to send, otherwise GET.

          Name:field      a header field; 'Name:' sends none, 'Name;' an empty one; Name:@FILE has it in a file
          NAME==TEXT      a parameter of the URL
          NAME=TEXT       a member of the JSON object that is sent (-f: a field of a form); NAME=@FILE has it in a file
          NAME:=JSON      the same, for numbers, lists, objects, true, false and null; NAME:=@FILE
          NAME@FILE       a file of a form; without a NAME and a form the body itself, byte for byte
          a[b][]=TEXT     a member deeper in the object

        Standard input is sent as the body if there is no item and it is not a terminal (-I: never). A URL without a
        scheme is loaded with https, one of this machine with http.


        """ + Help.options(of: .httpie) + "\nExit codes, those of httpie:\n\n"
        + Help.exitCodes(HTTPieExit.allCases.map { ($0.rawValue, $0.meaning) })

    /// - Parameter scheme: the word that named this command. `https` is the scheme of every URL without one; with
    ///   `http` such a URL has the scheme that it has in every grammar.
    static func run(_ arguments: [String], scheme: String) async -> Int32 {
        do throws(UsageError) {
            var options = try ArgumentParser.parse(arguments, table: .httpie)
            if options.wantsHelp { return Console.print(usage).rawValue }
            if options.wantsVersion { return Console.print(Help.version + "\n").rawValue }
            try prepare(&options, scheme, isTerminal: FileDescriptor.standardOutput.isTerminal)
            try OptionCheck.check(options)
            return await LoadCommand.run([options]).number(in: .httpie)
        } catch {
            _ = Console.usage(error.words, Grammar.httpie.help)
            return HTTPieExit.other.rawValue
        }
    }

    /// Builds the request from the arguments.
    static func prepare(_ options: inout Options, _ scheme: String = "http", isTerminal: Bool) throws(UsageError) {
        var words = options.urls[...]
        guard let first = words.first else { throw UsageError("no URL") }
        let isMethod = first.allSatisfy { $0.isASCII && $0.isLetter }
        if isMethod, words.count > 1,
            !HTTPieItem.isItem(words[1]) || words[1].contains("://") || words[1].hasPrefix(":")
        {
            options.request.method = Method(first.uppercased())
            words = words.dropFirst()
        }
        options.urls = [url(words.removeFirst(), scheme)]
        options.request.expandsPatterns = false
        if options.redirects.maximum == nil { options.redirects.maximum = 29 }
        try openSession(&options)
        var items: [HTTPieItem] = []
        for word in words { items.append(try HTTPieItem(word)) }
        try login(&options)
        for item in items { try take(item, &options) }
        try fill(&options, items.filter { ![.field, .fieldFile, .query, .queryFile].contains($0.mark) })
        if options.items.isOffline, AddressText.url(options.urls[0])?.scheme?.lowercased().hasPrefix("http") != true {
            throw UsageError("--offline shows requests of http and https")
        }
        show(&options, isTerminal: isTerminal)
    }

    /// Completes `:8080/path` and `:/path` with `localhost`.
    private static func url(_ word: String, _ scheme: String) -> String {
        if word.hasPrefix(":") {
            let rest = word.dropFirst()
            return "http://localhost" + (rest.first?.isNumber ?? false ? ":" : "") + rest
        }
        return scheme == "https" && !word.contains("://") ? "https://" + word : word
    }

    /// The cookies of `--session`: in a file of the server and the name, or in the file that is named by a path.
    private static func openSession(_ options: inout Options) throws(UsageError) {
        guard let name = options.items.session else { return }
        var path = name
        if !name.contains("/") {
            guard let first = name.first, first != ".",
                name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "_-.".contains($0)) })
            else { throw UsageError("--session takes a path, or a name of letters, digits, _, - and ., not \(name)") }
            guard let folder = ConfigFile.folder else { throw UsageError("--session \(name): there is no home folder") }
            guard let url = AddressText.url(options.urls[0]), let host = url.host(), !host.hasPrefix(".") else {
                throw UsageError("--session \(name): the URL has no host")
            }
            path = "\(folder)/sessions/\(host.lowercased())\(url.port.map { "_\($0)" } ?? "")/\(name)"
        }
        options.memory.cookieInputs.append(path)
        options.memory.cookieOutput = path
        options.memory.createsCookieFolder = true
    }

    private static func login(_ options: inout Options) throws(UsageError) {
        guard let text = options.items.login else { return }
        switch options.items.loginKind {
        case "bearer": options.login.token = try OptionValue.token(text)
        case "digest":
            options.login.take(user: text)
            options.login.allow(.digest)
        default:
            options.login.take(user: text)
            options.login.allow(.basic)
        }
    }

    private static func take(_ item: HTTPieItem, _ options: inout Options) throws(UsageError) {
        switch item.mark {
        case .field, .fieldFile:
            let value = item.mark == .field ? item.value : try text(item.value)
            if value == ";" {
                options.request.fields.append(try OptionValue.field(item.name + ":").0, "")
                return
            }
            let (name, checked) = try OptionValue.field("\(item.name):\(value)")
            if checked.isEmpty {
                options.request.removedFields.append(name)
            } else {
                options.request.fields.append(name, checked)
            }
        case .query, .queryFile:
            let value = item.mark == .query ? item.value : try text(item.value)
            let encoded = Options.Payload.encoded(value.utf8)
            options.data.query.append(.text(Options.Payload.encoded(item.name.utf8) + "=" + encoded))
        default: break
        }
    }

    /// Adds the body.
    private static func fill(_ options: inout Options, _ items: [HTTPieItem]) throws(UsageError) {
        let hasFiles = items.contains { $0.mark == .file }
        if hasFiles, options.items.kind == .json { return try send(items, &options) }
        if items.isEmpty {
            if options.items.kind == .json, !options.request.payloads.isEmpty { setJSONTypes(&options) }
            guard options.request.payloads.isEmpty, !options.items.ignoresInput, isatty(STDIN_FILENO) == 0,
                let bytes = try? InputFile.all("-"), !bytes.isEmpty
            else { return }
            options.request.payloads = [Options.Payload(content: .bytes(bytes))]
            if options.items.kind == .json { setJSONTypes(&options) }
            return
        }
        switch options.items.kind {
        case .json:
            options.request.payloads = [.text(try object(items))]
            setJSONTypes(&options)
        case .form where !hasFiles:
            var fields: [Options.Payload] = []
            for item in items {
                let name = Options.Payload.encoded(item.name.utf8)
                fields.append(.text("\(name)=\(Options.Payload.encoded(try value(item).utf8))"))
            }
            options.request.payloads = fields
            addField(&options, .contentType, "application/x-www-form-urlencoded; charset=utf-8")
        case .form, .multipart:
            for item in items {
                options.request.formFields.append(
                    item.mark == .file
                        ? try FormField("\(item.name)=@\(item.value)", "NAME@FILE")
                        : FormField(name: item.name, content: .text(try value(item))))
            }
        }
    }

    /// Sends the file of the item `@FILE` as the body, with the media type of its name.
    private static func send(_ items: [HTTPieItem], _ options: inout Options) throws(UsageError) {
        guard items.count == 1, items[0].name.isEmpty, options.request.payloads.isEmpty else {
            throw UsageError(
                "files are sent in a form: -f, or --multipart; @FILE without a name is the whole body")
        }
        let field = try FormField("=@\(items[0].value)", "@FILE")
        guard case .file(let path) = field.content else { return }
        options.request.payloads = [.file(path)]
        let place = URL(filePath: path)
        let guess = place.pathExtension.isEmpty ? nil : RequestBody.file(place).contentType
        if let type = field.type ?? guess { addField(&options, .contentType, type) }
        setJSONTypes(&options)
    }

    private static func object(_ items: [HTTPieItem]) throws(UsageError) -> String {
        var tree = JSONTree()
        for item in items {
            let value = try value(item)
            guard item.mark == .json || item.mark == .jsonFile else {
                try tree.set(item.name, JSONText.text(value).description)
                continue
            }
            let plain = Pretty(hasColors: false, isFormatted: false)
            guard let json = JSONPrinter.make(Array(value.utf8), plain) else {
                throw UsageError("\(item.name): the text after := is not JSON")
            }
            try tree.set(item.name, String(json.dropLast()))
        }
        return tree.text
    }

    private static func value(_ item: HTTPieItem) throws(UsageError) -> String {
        item.mark == .textFile || item.mark == .jsonFile ? try text(item.value) : item.value
    }

    /// Returns the text of a file. As in httpie, other bytes are an error: they cannot stand in JSON or in a field.
    private static func text(_ path: String) throws(UsageError) -> String {
        let bytes: [UInt8]
        do throws(OutputError) { bytes = try InputFile.all(path) } catch { throw UsageError(error.words) }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw UsageError("\(path): the file is not text in UTF-8; NAME@FILE sends any file, in a form")
        }
        return text
    }

    private static func setJSONTypes(_ options: inout Options) {
        addField(&options, .contentType, "application/json")
        addField(&options, .accept, "application/json, */*;q=0.5")
    }

    private static func addField(_ options: inout Options, _ name: FieldName, _ value: String) {
        guard !options.request.fields.contains(name), !options.request.removedFields.contains(name) else { return }
        options.request.fields.append(name, value)
    }

    private static func show(_ options: inout Options, isTerminal: Bool) {
        if options.output.pretty == nil { options.output.pretty = .usual(isTerminal: isTerminal) }
        print(&options, isTerminal: isTerminal && options.outputs.isEmpty)
        if options.items.isOffline {
            // There is nothing to download.
            options.items.downloads = false
            return
        }
        if options.items.downloads {
            options.output.failsOnStatus = true
            guard options.outputs.isEmpty else { return }
            (options.outputs, options.output.destination) = ([.namedAfterURL], .namedAfterURL)
            options.saving.takesServersName = !options.output.continues
            options.saving.collision = .number
            return
        }
        if options.items.isQuiet {
            options.items.prints = nil
            options.output.dropsBody = options.outputs.isEmpty
            return
        }
        options.output.dropsBody = options.items.prints?.contains(.body) == false
    }

    /// Chooses the parts that are written.
    private static func print(_ options: inout Options, isTerminal: Bool) {
        let items = options.items
        var parts: PrintedParts
        if let given = items.prints {
            parts = given
        } else if items.verbosity > 0 {
            parts = PrintedParts([.requestHead, .requestBody, .head, .body])
            if items.verbosity > 1 { parts.parts.insert(.meta) }
        } else if items.isOffline {
            parts = PrintedParts([.requestHead, .requestBody])
        } else {
            parts = PrintedParts(isTerminal ? [.head, .body] : [.body])
        }
        parts.includesAll = items.includesAll || items.verbosity > 0
        options.items.prints = parts
    }
}
