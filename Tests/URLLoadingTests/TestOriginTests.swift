import FoundationEssentials
import Testing
import URLLoading
import URLLoadingIO
import URLLoadingTesting
import URLLoadingWire

/// The origin itself: does it do what a test asks of it?
@Suite struct TestOriginTests {
    @Test func answersAndRecords() async throws {
        try await withTestOrigin { origin in
            origin.route("/echo") { .ok(.bytes($0.body)) }
            try await withSession(.ephemeral) { session in
                let request = Request(url: origin.url("/echo?q"), method: .post, body: .data(Data("hello".utf8)))
                for _ in 1...3 {
                    let (data, response) = try await session.data(for: request)
                    #expect(String(decoding: data, as: UTF8.self) == "hello")
                    #expect(response.http?.status == .ok)
                }
                let (_, missing) = try await session.data(from: origin.url("/nothing"))
                #expect(missing.http?.status == .notFound)
            }
            #expect(origin.requests.map(\.description) == [
                "POST /echo?q HTTP/1.1 on connection 1, exchange 1", "POST /echo?q HTTP/1.1 on connection 1, exchange 2",
                "POST /echo?q HTTP/1.1 on connection 1, exchange 3", "GET /nothing HTTP/1.1 on connection 1, exchange 4",
            ])
            try await origin.wait { $0.open == 0 }
            #expect(origin.counts.mostOpen == 1)
        }
    }

    @Test(arguments: [
        (TestOrigin.Answer.Body.none, 0), (.bytes([1, 2, 3]), 3), (.chunks(["ab", .pause(.milliseconds(1)), "c"]), 3),
        (.untilClose(["abc", "d"]), 4), (.repeated(count: 200_000), 200_000), (.repeated(count: 200_001, chunked: true), 200_001),
    ])
    func bodies(_ body: TestOrigin.Answer.Body, count: Int) async throws {
        try await withTestOrigin { origin in
            origin.route("/") { _ in .ok(body) }
            try await withSession(.ephemeral) { session in
                for (method, expected) in [(Method.get, count), (.head, 0), (.get, count)] {
                    let (data, _) = try await session.data(for: Request(url: origin.url(), method: method))
                    #expect(data.count == expected)
                }
            }
        }
    }

    @Test func trailersAndInterimResponses() async throws {
        try await withTestOrigin { origin in
            origin.route("/") { _ in
                .ok(.chunks(["x"], trailers: ["Sum": "1"])).after(.init(.earlyHints, headers: [.link: "<a>"]))
            }
            try await withSession(.ephemeral) { session in
                let trailers = try await session.load(Request(url: origin.url())) { _, body in
                    _ = try await body.collect(upTo: 10)
                    return body.trailers
                }
                #expect(trailers["Sum"] == "1")
            }
        }
    }

    @Test func faultsHitWhereTheyShould() async throws {
        let long = [UInt8](repeating: 1, count: 1000)
        try await withTestOrigin { origin in
            let faults: [(TestOrigin.Fault, LoadError.Reason?)] = [
                (.init(.requestHead, .close), .truncated), (.init(.requestHead, .reset), .connectionLost),
                (.init(.responseHead(after: 5), .close), .truncated), (.init(.responseHead(), .garbage()), .notHTTP),
                (.init(.responseBody(after: 10), .cut), .truncated), (.init(.end, .close), nil),
                (.init(.responseBody(after: 10), .delay(.milliseconds(1))), nil), (.init(.idle, .close), nil),
            ]
            for (index, (fault, reason)) in faults.enumerated() {
                origin.route("/\(index)", faults: [fault]) { _ in .ok(.bytes(long)) }
                try await withSession(.ephemeral) { session in
                    let outcome = await Result { try await session.data(from: origin.url("/\(index)")).0.count }
                    switch (outcome, reason) {
                    case (.success(let count), nil): #expect(count == long.count)
                    case (.failure(let error as LoadError), let reason?): #expect(error.reason == reason, "\(fault)")
                    default: Issue.record("\(fault): \(outcome)")
                    }
                }
            }
            #expect(origin.counts.faults == faults.count)
            try await origin.wait { $0.open == 0 }
        }
    }

    @Test func rawAnswersAndGreetings() async throws {
        try await withTestOrigin { origin in
            origin.route("/raw") { _ in .raw(["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", .pause(.milliseconds(1)), "\r\nok"], then: .next) }
            try await withSession(.ephemeral) { session in
                for _ in 1...2 {
                    let (data, _) = try await session.data(from: origin.url("/raw"))
                    #expect(data == Data("ok".utf8))
                }
            }
            #expect(origin.counts.accepted == 1)
        }
        var ssh = TestOrigin.Configuration()
        ssh.greeting = .init(["SSH-2.0-x\r\n"], then: .stall)
        try await withTestOrigin(ssh) { origin in
            try await withSession(.ephemeral) { session in
                let error = await #expect(throws: LoadError.self) { try await session.data(from: origin.url()) }
                #expect(error?.reason == .notHTTP)
            }
        }
    }
}

extension Result where Failure == any Error {
    init(_ make: () async throws -> Success) async {
        do { self = .success(try await make()) } catch { self = .failure(error) }
    }
}
