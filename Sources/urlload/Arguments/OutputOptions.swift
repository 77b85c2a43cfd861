// SPDX-License-Identifier: Apache-2.0

// The options for what is written, and where.

import FoundationEssentials

struct OutputOptions: Sendable {
    /// The destination of this load.
    var destination = Options.Destination.standardOutput
    /// The file that this load shares with others; `nil` for one of its own.
    var joined: JoinedFile?
    var resuming = Options.Resuming.never
    var continues: Bool { resuming != .never }
    var includesHead = false
    /// True if the body is not written.
    var dropsBody = false
    /// The file for the heads of all responses; `-` is standard output.
    var headFile: String?
    var failsOnStatus = false
    var failsWithBody = false
    var showsSecrets = false
    var printsSummary = false
    var printsEvents = false
    /// The format that `-w` writes after each load.
    var writeOut: String?
    /// `nil` for the default of the destination.
    var pretty: Pretty?
    /// The file of the HTTP Archive.
    var archiveFile: String?
    /// The file of the packets of HTTP/3 connections.
    var packetLogFile: String?
    var drawsWaterfall = false
    /// The HTML page with the waterfall of all requests.
    var reportFile: String?
    var measures: Bool { printsSummary || writeOut != nil || drawsWaterfall || reportFile != nil }
}

/// Options for the names and attributes of files.
struct SavingOptions: Sendable {
    enum Collision: Sendable, Hashable {
        case replace
        /// The new file is named `FILE.1`.
        case number
        case skip
    }
    /// Every URL without a file of its own is saved under its own name (`--remote-name-all`).
    var namesAll = false
    var folder: String?
    var makesFolders = false
    /// The name is taken from Content-Disposition, if the response has it (`-J`).
    var takesServersName = false
    var collision = Collision.replace
    /// The file gets the time of Last-Modified (`-R`).
    var setsTime = false
    var inputLists: [String] = []
    /// All bodies go to the one file of `-o`, one after the other (wget's `-O`).
    var joinsAll = false
    /// Overrides a grammar whose default is to set the time.
    var keepsOwnTime = false
    /// The name is taken from the URL that redirects lead to (wget's `--trust-server-names`).
    var takesLastURL = false
    /// True if the name of a file is known only with its response.
    var namesFromResponse: Bool { takesServersName || takesLastURL }
    /// The folders that a name taken from the URL includes (wget's `-x`).
    var folders: URLFolders?
    /// A name taken from the URL includes its query.
    var namesWithQuery = false

    /// Returns the name of the file for a URL: with its folders, or its last component alone.
    func name(for url: URL) -> String {
        (folders?.path(for: url) ?? "") + FileName.make(for: url, hasQuery: namesWithQuery)
    }
    /// An existing file is replaced only by a newer version (wget's `-N`).
    var comparesTime = false
}
