// SPDX-License-Identifier: Apache-2.0

// A program in the middle of its move (docs/guides/moving.md, target by target): one of its targets loads by the
// toolchain's module, the other by the layer. What they pass to each other is URL, Data, header fields and URLError.

import Foundation
import Newer
import Older

guard CommandLine.arguments.count == 2, let origin = URL(string: CommandLine.arguments[1]) else { exit(2) }
var failures = 0
func check(_ what: String, _ holds: Bool) {
    if !holds { failures += 1 }
    print(holds ? "ok      \(what)" : "FAILED  \(what)")
}

do {
    let (next, fields) = try Older.login(origin.appendingPathComponent("set-cookie"))
    let byNewer = try Newer.load(next, fields)
    let byOlder = try Older.load(next, fields)
    check("the newer goes on where the older began", byNewer == Data("taste=sweet".utf8))
    check("both get the same", byNewer == byOlder)
} catch { check("\(error)", false) }

for load in [Older.load, Newer.load] {
    do {
        _ = try load(URL(string: "http://127.0.0.1:1/")!, [:])
        check("a closed port is an error", false)
    } catch let error as URLError {
        check("an error is Foundation's from either module", error.code == .cannotConnectToHost)
    } catch { check("\(error)", false) }
}
check("the newer's classes are the layer's", Newer.request.hasPrefix("URLLoadingCompatibility."))
exit(failures == 0 ? 0 : 1)
