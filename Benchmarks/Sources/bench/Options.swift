// SPDX-License-Identifier: Apache-2.0

import Foundation

struct Options {
    var rounds = 5
    var scenarios = Scenario.all
    var contenders = Contender.all.filter(\.isBuilt)
    var scale = 1.0
    var write: String?
    /// Whether the costs of background transfers are measured, and nothing else.
    var measuresBackground = false

    static let usage = """
        usage: script/bench [--rounds N] [--scenario a,b] [--contender x,y] [--quick] [--write FILE]
               script/bench --far | --http3 [the same options]
               script/bench --background
          scenarios:  \(Scenario.all.map(\.name).joined(separator: " "))
          far:        \(Scenario.far.map(\.name).joined(separator: " "))
          HTTP/3:     \(Scenario.http3.map(\.name).joined(separator: " "))
          contenders: \((Contender.all + Contender.byName).map(\.name).joined(separator: " "))
          --quick     two rounds of a fifth of the requests
          --far       the scenarios at a distance, behind a relay, and no others
          --http3     the scenarios over HTTP/3, beside HTTP/2, and no others
          --background  what background transfers cost (docs/benchmarks/background.md)
          --write     also keep the page in FILE (docs/benchmarks/YEAR-MONTH.md)
          URLLOADING_BENCH_PEERS=ahc,go adds the peers that cost a download; URLLOADING_BENCH_OURS=0 leaves ours out
        """

    init(_ arguments: some Sequence<String>) throws {
        var arguments = arguments.makeIterator()
        var named: [Scenario]?
        var (isFar, isHTTP3) = (false, false)
        func value(_ option: String) throws -> String {
            guard let value = arguments.next() else { throw Failure("\(option) wants a value\n\(Self.usage)") }
            return value
        }
        while let option = arguments.next() {
            switch option {
            case "--rounds":
                guard let count = Int(try value(option)), count > 0 else { throw Failure(Self.usage) }
                rounds = count
            case "--scenario":
                let names = try value(option).split(separator: ",").map(String.init)
                named = try names.map { name in
                    let known = Scenario.all + Scenario.far + Scenario.http3
                    guard let found = known.first(where: { $0.name == name }) else {
                        throw Failure("no scenario \(name)\n\(Self.usage)")
                    }
                    return found
                }
            case "--contender":
                let names = try value(option).split(separator: ",").map(String.init)
                contenders = try names.map { name in
                    guard let found = (Contender.all + Contender.byName).first(where: { $0.name == name }) else {
                        throw Failure("no contender \(name)\n\(Self.usage)")
                    }
                    guard found.isBuilt else { throw Failure("\(name) is not built\n\(Self.usage)") }
                    return found
                }
            case "--quick":
                rounds = 2
                scale = 0.2
            case "--far": isFar = true
            case "--http3": isHTTP3 = true
            case "--background": measuresBackground = true
            case "--write": write = try value(option)
            case "--help", "-h":
                print(Self.usage)
                exit(0)
            default: throw Failure("unknown option \(option)\n\(Self.usage)")
            }
        }
        scenarios = named ?? (isFar ? Scenario.far : isHTTP3 ? Scenario.http3 : Scenario.all)
        guard Servers.hasRelay || scenarios.allSatisfy({ $0.distance == nil }) else {
            throw Failure("far scenarios need the relay, which URLLOADING_BENCH_OURS=0 does not build")
        }
    }
}
