// SPDX-License-Identifier: Apache-2.0

import Testing
import URLLoading

@testable import urlload

struct WriteOutTests {
    private func written(_ format: String, failure: Report.Failure? = nil) throws -> String {
        var report = Report(url: "http://h.test/x")
        report.head = HTTPHead(status: .ok, headers: [.contentType: "text/plain", .etag: "\"e\""])
        report.bytes = 12
        report.failure = failure
        let job = Job(options: try ArgumentParser.parse(["u"]), url: "http://h.test/x", number: 3)
        return WriteOut.make(format, report, job).map { ($0.isError ? "!" : "") + $0.text }.joined(separator: "|")
    }

    @Test(
        "Variables and escapes are expanded, all else is kept",
        arguments: [
            ("%{http_code}\\n", "200\n"), ("%{size_download} %{urlnum}", "12 3"), ("100%%", "100%"),
            ("%header{etag}", "\"e\""),
            ("a\\tb\\q", "a\tb\\q"), ("%{nonsense}x", "x"), ("%z", "%z"), ("a%{stderr}b%{stdout}c", "a|!b|c"),
            ("%{onerror}never", ""), ("%{content_type}", "text/plain"), ("%{exitcode}", "0"),
        ])
    func formats(_ format: String, _ text: String) throws { #expect(try written(format) == text) }

    @Test("%{onerror} writes the rest only after a failure; %{json} is an object")
    func others() throws {
        let failure = Report.Failure(Status.notFound)
        #expect(try written("a%{onerror}b %{exitcode}", failure: failure) == "ab 22")
        #expect(try written("%{json}").hasPrefix("{\"content_type\":\"text/plain\","))
    }

    @Test("The message about a partial file says how to resume it")
    func kept() throws {
        var kept = Report.Kept(file: "a.iso", bytes: 96_468_992, total: 209_715_200, isChecked: true)
        let plain = try ArgumentParser.parse(["-O", "u"])
        let going = try ArgumentParser.parse(["-C", "-O", "u"])
        #expect(kept.words(plain) == "a.iso: 92.0 MiB of 200.0 MiB are kept; repeat with -C to resume")
        #expect(kept.words(going) == "a.iso: 92.0 MiB of 200.0 MiB are kept; repeat the command to resume")
        let wget = try ArgumentParser.parse(["u"], table: .wget)
        #expect(kept.words(wget) == "a.iso: 92.0 MiB of 200.0 MiB are kept; repeat with -c to resume")
        kept.isChecked = false
        #expect(kept.words(wget).hasSuffix("repeat with -c to resume without validation"))
        #expect(kept.words(plain).hasSuffix("repeat with -C - to resume without validation"))
        var report = Report(url: "u")
        (report.file, report.bytes, report.resumedAt) = ("a.iso", 113_246_208, 96_468_992)
        #expect(report.savedLine(4.4) == "saved a.iso, 108.0 MiB in 4.4 s, 24.5 MiB/s, resumed at 92.0 MiB")
    }
}
