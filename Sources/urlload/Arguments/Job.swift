// SPDX-License-Identifier: Apache-2.0

// A job: one URL of a group of options, with the destination of its body.

import FoundationEssentials

struct Job: Sendable {
    /// The options of the group, with the destination and the upload of this load only.
    var options: Options
    /// The URL as given, or an expansion of its pattern.
    var url: String
    /// The index of the job in the order of the command line, from 0.
    var number: Int
    /// A message about the destination, printed before the load begins.
    var note: String?

    /// Returns all jobs of a group.
    /// - Throws: ``OutputError`` for an unreadable list or an invalid pattern.
    static func all(_ options: Options) throws(OutputError) -> [Job] {
        var jobs: [Job] = []
        let urls = options.urls + (try listed(options))
        let joined = options.saving.joinsAll && urls.count > 1 ? JoinedFile() : nil
        for (index, text) in urls.enumerated() {
            for match in try matches(AddressText.cleaned(text, keepsPath: options.request.keepsPath), options) {
                var own = options
                own.output.destination = destination(options, joined == nil ? index : 0, match.parts)
                own.output.joined = joined
                own.request.upload = index < options.uploads.count ? options.uploads[index] : nil
                own.uploads = own.request.upload.map { [$0] } ?? []
                jobs.append(Job(options: own, url: match.url, number: jobs.count))
            }
        }
        try checkUploads(jobs)
        name(&jobs)
        return jobs
    }

    /// Throws if several loads are to send the same pipe, of which all but one would send nothing.
    private static func checkUploads(_ jobs: [Job]) throws(OutputError) {
        guard jobs.count > 1 else { return }
        var paths: Set<String> = []
        for path in jobs.compactMap(\.options.request.upload) where !paths.insert(path).inserted {
            guard InputFile.isPipe(path) else { continue }
            let name = path == "-" ? "standard input" : path
            throw OutputError(.usage, "\(name) can be sent once, and -T is for several URLs here")
        }
    }

    private static func matches(_ text: String, _ options: Options) throws(OutputError) -> [URLPattern.Match] {
        guard options.request.expandsPatterns else { return [URLPattern.Match(url: text, parts: [])] }
        do throws(URLPattern.Mistake) { return try URLPattern.matches(text) } catch {
            throw OutputError(.badURL, error.words)
        }
    }

    /// The URLs of `--input-file`, one a line; empty lines and lines that begin with `#` are skipped.
    private static func listed(_ options: Options) throws(OutputError) -> [String] {
        var urls: [String] = []
        for path in options.saving.inputLists {
            let text = String(decoding: try InputFile.all(path), as: UTF8.self)
            urls += text.split(whereSeparator: \.isNewline).map { AddressText.trimmed($0) }
                .filter { !$0.isEmpty && !$0.hasPrefix("#") }
        }
        return urls
    }

    private static func destination(_ options: Options, _ index: Int, _ parts: [String]) -> Options.Destination {
        if options.outputs.first == .nothing { return .nothing }
        let isNamed = !options.outputs.isEmpty && options.outputs.allSatisfy { $0 == .namedAfterURL }
        let own = index < options.outputs.count ? options.outputs[index] : nil
        switch own ?? (isNamed || options.saving.namesAll ? .namedAfterURL : .standardOutput) {
        case .file(let template): return .file(placed(URLPattern.name(template, parts), options.saving))
        case let other: return other
        }
    }

    private static func placed(_ name: String, _ saving: SavingOptions) -> String {
        guard let folder = saving.folder, !name.hasPrefix("/") else { return name }
        return folder.hasSuffix("/") ? folder + name : folder + "/" + name
    }

    /// Sets the files of `-O`. Repeated names get a number.
    private static func name(_ jobs: inout [Job]) {
        let named = jobs.indices.filter {
            jobs[$0].options.output.destination == .namedAfterURL && !jobs[$0].options.saving.namesFromResponse
        }
        let wanted = named.map { index in
            let saving = jobs[index].options.saving
            return AddressText.url(jobs[index].url).map {
                placed(saving.name(for: $0), saving)
            }
        }
        let keeps = jobs.first?.options.saving.collision == .number && !(jobs.first?.options.output.continues ?? false)
        let names = FileName.distinct(wanted) { keeps && FileCheck.exists($0) }
        for (index, name) in zip(named, names) {
            guard let name else { continue }
            jobs[index].options.output.destination = .file(name.own)
            guard name.own != name.wanted else { continue }
            let address = AddressText.url(jobs[index].url).map(AddressText.shown) ?? jobs[index].url
            let reason =
                FileCheck.exists(name.wanted) && keeps
                ? "\(name.wanted) exists already" : "an earlier URL is saved to \(name.wanted)"
            jobs[index].note = "\(address) is saved to \(name.own): \(reason)"
        }
        for index in jobs.indices where jobs[index].options.saving.comparesTime {
            guard case .file(let path) = jobs[index].options.output.destination, !FileCheck.isDevice(path) else {
                continue
            }
            jobs[index].options.data.condition = TimeCondition(file: path)
        }
        var given = Set(names.compactMap { $0?.own })
        let isNamed = Set(named)
        for index in jobs.indices where keeps && !isNamed.contains(index) {
            guard case .file(let path) = jobs[index].options.output.destination, !FileCheck.isDevice(path) else {
                continue
            }
            let own = FileName.free(path) { given.contains($0) }
            given.insert(own)
            jobs[index].options.output.destination = .file(own)
        }
    }
}
