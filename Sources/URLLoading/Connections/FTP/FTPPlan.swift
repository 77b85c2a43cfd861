// SPDX-License-Identifier: Apache-2.0

// The operation that a request asks for, and the part of the file. Pure.

import FoundationEssentials
import URLLoadingWire

struct FTPPlan: Sendable {
    let target: FTPTarget
    let operation: FTPConversation.Job.Operation
    private let range: ByteRange?
    /// The validator that the file must still have for `range` to apply, as with If-Range; `nil` without a condition.
    private let validator: String?
    private let storeOffset: Int64

    /// The part of the file to transfer.
    struct Part: Equatable {
        var offset: Int64
        /// The end of the part in the file, if known.
        var end: Int64?
        /// The file is longer than the part.
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
            // Several ranges would need a multipart response; the whole file is returned instead, as RFC 9110 allows.
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
            throw unusable("a directory has no size; use GET to list it")
        case .put where request.body != nil, .post where request.body != nil:
            guard path.isDirectory else { return .store }
            throw unusable("an upload needs a file name, but the URL ends in a slash")
        default: throw unusable("FTP supports GET and HEAD, and PUT or POST with a body")
        }
    }

    private static func unusable(_ detail: String) -> LoadError {
        LoadError(.badRequest, phase: .preparing, party: .local, detail: detail)
    }

    /// The job to begin with; the part is determined when the server has reported the size of the file.
    var job: FTPConversation.Job {
        // Without a validator, a failed restart must not fall back to the whole file.
        .init(operation, target.path, offset: operation == .store ? storeOffset : 0, mayBeginAnew: validator != nil)
    }

    /// Returns the part of the file to transfer.
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
        // No file has a byte with the largest number.
        case .span(let first, let last): return Part(offset: first, end: last < .max ? last + 1 : .max, isCut: true)
        case .last:
            throw LoadError(
                .rangeNotSatisfiable, phase: .waiting, party: .remote,
                detail: "the server does not tell the size of the file")
        }
    }

    /// The size of a file in text mode, or of a listing, is not the number of bytes sent, so it is ignored.
    private func wholeEnd(_ size: Int64?) -> Int64? { operation == .retrieve && !target.path.isText ? size : nil }

    var asksForPart: Bool { range != nil }

    /// Returns the validator of a file. A date with a precision of seconds is weak, so the size is added.
    static func validator(size: Int64?, modification: String?) -> String? {
        guard let size, let modification, HTTPDate(ftp: modification) != nil else { return nil }
        return "ftp \(size) \(modification)"
    }
}
