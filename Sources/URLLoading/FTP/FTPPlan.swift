// What a request wants of a server, and where in the file it begins. Pure.

import FoundationEssentials
import URLLoadingWire

struct FTPPlan: Sendable {
    let target: FTPTarget
    let operation: FTPConversation.Job.Operation
    private let range: ByteRange?
    /// By what the file must still be known for `range` to hold (as If-Range does); `nil` if nobody asks.
    private let validator: String?
    private let storeOffset: Int64

    /// A part of the file, and what of it must come.
    struct Part: Equatable {
        var offset: Int64
        /// Where it ends, if that is known.
        var end: Int64?
        /// The server has more than is wanted.
        var isCut = false
    }

    static func make(_ request: Request) throws(LoadError) -> FTPPlan {
        let target: FTPTarget
        do throws(WireViolation) { target = try FTPTarget(request.url.absoluteString) } catch {
            throw LoadError(error, .preparing)
        }
        let range = request.headers[.range].flatMap { ByteRange.parse($0) }
        return FTPPlan(
            target: target, operation: try operation(request, target.path),
            // Several ranges would need a multipart answer: they get the whole, as a server may do.
            range: range?.count == 1 && !target.path.isText ? range?.first : nil,
            validator: request.headers[.ifRange], storeOffset: request.ftpStoreOffset ?? 0)
    }

    private static func operation(_ request: Request, _ path: FTPPath) throws(LoadError)
        -> FTPConversation.Job.Operation
    {
        switch request.method {
        case .get where request.body == nil: return path.isDirectory ? .list : .retrieve
        case .head where request.body == nil:
            guard path.isDirectory else { return .size }
            throw unusable("a folder has neither size nor date: GET lists it")
        case .put where request.body != nil, .post where request.body != nil:
            guard path.isDirectory else { return .store }
            throw unusable("a file is stored under a name: the URL ends in a slash")
        default: throw unusable("GET and HEAD, and PUT or POST with a body")
        }
    }

    private static func unusable(_ detail: String) -> LoadError {
        LoadError(.badRequest, phase: .preparing, party: .local, detail: detail)
    }

    /// What is begun with: the rest is known when the server has said how large the file is.
    var job: FTPConversation.Job {
        // Nobody asked for a part who did not want it at any price.
        .init(operation, target.path, offset: operation == .store ? storeOffset : 0, mayBeginAnew: validator != nil)
    }

    /// Where to begin.
    func part(size: Int64?, modification: String?) throws(LoadError) -> Part {
        guard operation == .retrieve, let range else {
            return Part(offset: operation == .store ? storeOffset : 0, end: wholeEnd(size))
        }
        if let validator, validator != Self.validator(size: size, modification: modification) {
            return Part(offset: 0, end: size)
        }
        if let size {
            guard let part = range.resolved(for: size) else {
                if validator != nil { return Part(offset: 0, end: size) }
                throw LoadError(.rangeNotSatisfiable, phase: .waiting, party: .local, detail: "of \(size) bytes")
            }
            return Part(offset: part.lowerBound, end: part.upperBound, isCut: part.upperBound < size)
        }
        switch range {
        case .from(let first): return Part(offset: first)
        case .span(let first, let last): return Part(offset: first, end: last + 1, isCut: true)
        case .last:
            throw LoadError(
                .rangeNotSatisfiable, phase: .waiting, party: .remote,
                detail: "the server does not say how long the file is")
        }
    }

    /// A size that is told of something else than the very bytes says nothing.
    private func wholeEnd(_ size: Int64?) -> Int64? { operation == .retrieve && !target.path.isText ? size : nil }

    var asksForPart: Bool { range != nil }

    /// A date of whole seconds alone would be weak; with the size it is what ftp has.
    static func validator(size: Int64?, modification: String?) -> String? {
        guard let size, let modification, HTTPDate(ftp: modification) != nil else { return nil }
        return "ftp \(size) \(modification)"
    }
}
