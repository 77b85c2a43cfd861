// SPDX-License-Identifier: Apache-2.0

// Checks of options that exclude each other.

import URLLoading

enum OptionCheck {
    static func check(_ options: Options) throws(UsageError) {
        guard !options.wantsHelp, !options.wantsVersion, options.generated == nil else { return }
        do throws(UsageError) { try checkAll(options) } catch {
            throw UsageError(options.shared.grammar.naming(error.words))
        }
    }

    private static func checkAll(_ options: Options) throws(UsageError) {
        let readers =
            options.request.payloads.count(where: \.readsStandardInput)
            + options.request.formFields.count(where: \.readsStandardInput)
            + options.uploads.count { $0 == "-" }
        if readers > 1 { throw UsageError("standard input can be sent once") }
        if readers > 0, options.saving.inputLists.contains("-") {
            throw UsageError("standard input is either the list of URLs or what is sent")
        }
        try checkBodies(options)
        try checkRemovedFields(options)
        try checkResuming(options)
        try checkEvents(options)
        if options.request.uploadState != nil {
            guard options.uploads.count == 1, options.request.upload != "-" else {
                throw UsageError("--resumable needs -T with a file")
            }
            if options.urls.count > 1 { throw UsageError("--resumable takes one URL: STATEFILE holds one upload") }
        }
        if options.tls.keyFile != nil, options.tls.certificateFile == nil { throw UsageError("--key needs --cert") }
        if options.login.signature != nil, options.login.token != nil || options.login.methods != nil {
            throw UsageError("--aws-sigv4 signs in the field Authorization: no other scheme stands beside it")
        }
        _ = try options.networks.policy()
        if let least = options.tls.minimumVersion, let most = options.tls.maximumVersion, least > most {
            throw UsageError("--tls-min is above --tls-max")
        }
    }

    /// Throws if the options give a request more than one body.
    private static func checkBodies(_ options: Options) throws(UsageError) {
        let sendsData = !options.request.payloads.isEmpty && !options.data.sendsDataAsQuery
        if !options.uploads.isEmpty, !options.request.formFields.isEmpty {
            throw UsageError("-F sends a form and -T sends a file: not both")
        }
        if !options.request.formFields.isEmpty, !options.request.payloads.isEmpty {
            throw UsageError("-F sends a form and -d sends data: not both")
        }
        if options.request.asksForHead, !options.request.formFields.isEmpty {
            throw UsageError("-I asks for a head and -F sends a form: not both")
        }
        if options.request.asksForHead, sendsData {
            throw UsageError("-I asks for a head and -d sends a body: not both; -G sends the data in the URL")
        }
        if !options.uploads.isEmpty, options.request.asksForHead || sendsData {
            throw UsageError("-T sends a file: not together with -d or -I")
        }
    }

    /// Throws for a field that cannot be left out.
    private static func checkRemovedFields(_ options: Options) throws(UsageError) {
        let removed = options.request.removedFields
        if removed.contains(.host), !options.request.fields.contains(.host) {
            throw UsageError("Host cannot be left out: HTTP/1.1 requires it (RFC 9112 3.2)")
        }
        if options.sendsBody, let name = [FieldName.contentLength, .transferEncoding].first(where: removed.contains) {
            throw UsageError("\(name) cannot be left out: a server would not know where the body ends (RFC 9112 6.3)")
        }
        if removed.contains(.cookie), options.memory.cookieOutput != nil {
            throw UsageError("without the field Cookie no cookies are kept: not with -c")
        }
    }

    private static func checkResuming(_ options: Options) throws(UsageError) {
        guard options.output.continues else { return }
        if !options.uploads.isEmpty {
            guard options.urls.allSatisfy({ $0.lowercased().hasPrefix("ftp") }) else {
                throw UsageError("-C with -T resumes uploads to ftp; over HTTP use --resumable")
            }
            return
        }
        if options.request.asksForHead || options.output.includesHead || options.sendsBody {
            throw UsageError("-C resumes a body that is loaded by GET and written without its head")
        }
        if options.saving.namesFromResponse, case .from = options.output.resuming {
            throw UsageError("a file whose name the response gives (-J) is not resumed at a given OFFSET")
        }
        if options.outputs.allSatisfy({ $0 == .namedAfterURL }) {
            let names = options.urls.compactMap { AddressText.url($0) }.map { FileName.make(for: $0) }
            if Set(names).count < names.count { throw UsageError("-C takes one URL for each file name") }
        }
        guard options.outputs.isEmpty || options.outputs == [.standardOutput], !options.saving.namesAll else { return }
        if case .from = options.output.resuming { return }
        throw UsageError("-C resumes a file: name it with -o, or give the OFFSET to begin at")
    }

    private static func checkEvents(_ options: Options) throws(UsageError) {
        guard options.output.printsEvents else { return }
        if options.request.removedFields.contains(.accept) { throw UsageError("--sse asks for events with Accept") }
        if options.urls.count > 1 { throw UsageError("--sse takes one URL: events do not end") }
        if options.output.destination != .standardOutput || options.output.includesHead || options.request.asksForHead {
            throw UsageError("--sse writes events to standard output: not with -o, -O, -i or -I")
        }
    }
}
