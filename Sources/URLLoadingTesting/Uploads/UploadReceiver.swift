// SPDX-License-Identifier: Apache-2.0

// One request to a server of resumable uploads. Section numbers are those of draft-ietf-httpbis-resumable-upload-12.

import Synchronization
import URLLoading
import URLLoadingIO
import URLLoadingWire

/// Used by the task of its connection; the server's state has a lock.
final class UploadReceiver: OriginReceiver {
    let server: ResumableUploadServer
    let request: HTTPTestServer.RecordedRequest
    private let connection: OriginConnection
    /// The path of upload resources; `nil` for a request to an upload resource.
    private let folder: String?
    private let handler: ResumableUploadServer.Handler

    /// The upload resource to which content is added.
    private var path: String
    private var number = 0
    private var transfer: Int?
    private var isPlain = false
    private var plain: [UInt8] = []
    private var nextProgress: Int64 = .max
    private var wantsInterim = false

    init(
        _ server: ResumableUploadServer, _ request: HTTPTestServer.RecordedRequest, _ connection: OriginConnection,
        folder: String?, _ handler: @escaping ResumableUploadServer.Handler
    ) {
        (self.server, self.request, self.connection) = (server, request, connection)
        (self.folder, self.handler, path) = (folder, handler, request.path)
    }

    private var completes: Bool? { request.headers[.uploadComplete].flatMap(StructuredField.boolean) }
    private var statedOffset: Int64? { request.headers[.uploadOffset].flatMap(StructuredField.integer) }
    private var statedLength: Int64? { request.headers[.uploadLength].flatMap(StructuredField.integer) }
    private var contentLength: Int64? { request.headers[.contentLength].flatMap { Int64($0) } }

    // MARK: Head

    func begin() -> [OriginStep] {
        server.state.withLock { $0.requests.append("\(request.method) \(request.path)") }
        wantsInterim =
            request.headers[.uploadInteropVersion].flatMap(StructuredField.integer)
            == server.configuration.interopVersion
        if let folder { return create(in: folder) }
        switch request.method {
        case .head, .get: return ask()
        case .delete: return remove()
        case .patch: return append()
        default: return [.answer(.status(.methodNotAllowed))]
        }
    }

    private func create(in folder: String) -> [OriginStep] {
        guard let completes else {
            isPlain = true
            note(offset: 0, completes: true)
            return []
        }
        let limits = server.configuration
        let length = statedLength ?? (completes ? contentLength : nil)
        if let largest = limits.maximumSize, let length, length > largest {
            return [.answer(.status(.contentTooLarge, headers: limitFields(completes: false)))]
        }
        path = server.state.withLock { state in
            let path = "\(folder)\(state.order.count + 1)-\(UInt64.random(in: 0 ... .max))"
            state.uploads[path] = .init(path: path, request: request, length: length)
            state.order.append(path)
            return path
        }
        own()
        note(offset: 0, completes: completes)
        var steps = faults(at: .created)
        if wantsInterim, limits.announces {
            var fields = limitFields()
            fields[.location] = limits.location(path)
            steps += interim(fields) + faults(at: .announced)
        }
        return steps
    }

    /// Handles an offset request (§4.3.2).
    private func ask() -> [OriginStep] {
        interrupt()
        let failures = faults(at: .asked)
        guard let upload else { return failures + [.answer(.status(.notFound))] }
        var fields = limitFields(completes: upload.isComplete)
        fields[.uploadOffset] = "\(upload.content.count)"
        fields[.uploadLength] = upload.length.map { "\($0)" }
        fields[.cacheControl] = "no-store"
        return failures + [.answer(.status(.noContent, headers: fields))]
    }

    /// Handles a cancellation (§4.5.2).
    private func remove() -> [OriginStep] {
        interrupt()
        let existed = server.state.withLock { state in
            state.order.removeAll { $0 == path }
            return state.uploads.removeValue(forKey: path) != nil
        }
        return [.answer(.status(existed ? .noContent : .notFound))]
    }

    /// Handles an append (§4.4.2).
    private func append() -> [OriginStep] {
        interrupt()
        guard let upload else { return [.answer(.status(.notFound))] }
        let offset = Int64(upload.content.count)
        let failures = faults(at: .appending)
        guard request.headers[.contentType] == ResumableUploads.mediaType else {
            return [.answer(.status(.unsupportedMediaType))]
        }
        guard let completes, let statedOffset else {
            return [.answer(.status(.badRequest, headers: limitFields(completes: false)))]
        }
        if upload.isComplete { return failures + [.answer(appendedToComplete(upload, statedOffset))] }
        guard statedOffset == offset else { return failures + [.answer(mismatch(offset, statedOffset))] }
        let end = contentLength.map { $0 > .max - offset ? .max : offset + $0 }
        if let length = upload.length, let end, completes ? end != length : end > length {
            return [
                .answer(problem(.badRequest, "inconsistent-upload-length", "inconsistent length values for upload"))
            ]
        }
        let limits = server.configuration
        if let most = limits.maximumAppendSize, contentLength ?? 0 > most {
            return [.answer(.status(.contentTooLarge, headers: limitFields(completes: false)))]
        }
        if let least = limits.minimumAppendSize, !completes, contentLength ?? .max < least {
            return [.answer(.status(.badRequest, headers: limitFields(completes: false)))]
        }
        own()
        note(offset: offset, completes: completes)
        return failures
    }

    private func appendedToComplete(_ upload: ResumableUploadServer.Upload, _ offset: Int64) -> HTTPTestServer.Response
    {
        guard server.configuration.repeatsAnswer, contentLength ?? 0 == 0, offset == Int64(upload.content.count),
            let final = upload.final
        else { return problem(.gone, "completed-upload", "upload is already completed") }
        return final
    }

    // MARK: Body

    func take(_ bytes: ArraySlice<UInt8>) -> (taken: Int, steps: [OriginStep]) {
        guard !isPlain else {
            plain += bytes
            count(bytes.count)
            return (bytes.count, [])
        }
        // Another request has taken over the upload (§4.6).
        guard let offset = ownOffset else { return (0, [.fault(.reset)]) }
        let carried = offset - (transfer.map { index in server.state.withLock { $0.transfers[index].offset } } ?? 0)
        var most = Int64(bytes.count)
        if let limit = server.configuration.maximumAppendSize {
            guard carried < limit else { return (0, [.answer(tooMuch(offset))]) }
            most = min(most, limit - carried)
        }
        let stop = server.state.withLock { state in
            state.faults.compactMap { fault -> Int64? in
                if case .received(let place) = fault.point, place > offset { place } else { nil }
            }.min()
        }
        if let stop { most = min(most, stop - offset) }
        let part = bytes.prefix(Int(most))
        guard store(part) else {
            return (
                part.count, [.answer(problem(.badRequest, "inconsistent-upload-length", "more than the length stated"))]
            )
        }
        return (part.count, progress(offset + most) + faults(at: .received(offset + most)))
    }

    /// Stores a part. Returns false if the upload exceeds its length, which ends it (§4.4.2).
    private func store(_ part: ArraySlice<UInt8>) -> Bool {
        let isValid = server.state.withLock { state in
            state.uploads[path]?.content += part
            guard let upload = state.uploads[path], let length = upload.length, Int64(upload.content.count) > length
            else { return true }
            state.uploads[path] = nil
            return false
        }
        count(part.count)
        return isValid
    }

    private func progress(_ offset: Int64) -> [OriginStep] {
        guard let step = server.configuration.progressStep, wantsInterim, offset >= nextProgress else { return [] }
        nextProgress = offset + step
        return interim([.uploadOffset: "\(offset)"])
    }

    func finish() async -> [OriginStep] {
        guard !isPlain else {
            return [
                .answer(
                    await answer(.init(path: path, request: request, content: plain, length: nil, isComplete: true)))
            ]
        }
        guard let offset = ownOffset, let upload else { return [.fault(.reset)] }
        guard completes == true else { return [.answer(partReceived(offset))] }
        if let length = upload.length, length != offset {
            return [.answer(problem(.badRequest, "inconsistent-upload-length", "less than the length stated"))]
        }
        var final = await answer(upload)
        final.headers[.uploadComplete] = StructuredField.text(true)
        server.state.withLock { [final] state in
            state.uploads[path]?.isComplete = true
            state.uploads[path]?.length = offset
            state.uploads[path]?.final = final
        }
        return faults(at: .completed) + [.answer(final)]
    }

    func end() {
        server.state.withLock { [path, number] state in
            if state.uploads[path]?.owner?.number == number { state.uploads[path]?.owner = nil }
        }
    }

    // MARK: Responses

    private func answer(_ upload: ResumableUploadServer.Upload) async -> HTTPTestServer.Response {
        do { return try await handler(upload) } catch { return .status(.internalServerError) }
    }

    private func partReceived(_ offset: Int64) -> HTTPTestServer.Response {
        var fields = limitFields(completes: false)
        fields[.uploadOffset] = "\(offset)"
        guard folder != nil else { return .status(.noContent, headers: fields) }
        fields[.location] = server.configuration.location(path)
        return .status(.created, headers: fields)
    }

    private func tooMuch(_ offset: Int64) -> HTTPTestServer.Response {
        var fields = limitFields(completes: false)
        fields[.uploadOffset] = "\(offset)"
        return .status(.contentTooLarge, headers: fields)
    }

    /// Returns the response to a wrong offset (§7.1).
    private func mismatch(_ offset: Int64, _ stated: Int64) -> HTTPTestServer.Response {
        var answer = problem(
            .conflict, "mismatching-upload-offset", "offset from request does not match offset of resource",
            #", "expected-offset": \#(offset), "provided-offset": \#(stated)"#)
        answer.headers[.uploadOffset] = "\(offset)"
        return answer
    }

    /// Returns a problem document (RFC 9457).
    private func problem(_ status: Status, _ type: String, _ title: String, _ more: String = "")
        -> HTTPTestServer.Response
    {
        let text =
            #"{"type": "https://iana.org/assignments/http-problem-types#\#(type)", "title": "\#(title)"\#(more)}"#
        var fields = limitFields(completes: false)
        fields[.contentType] = "application/problem+json"
        return .status(status, headers: fields, body: .bytes(Array(text.utf8)))
    }

    private func limitFields(completes: Bool? = nil) -> Headers {
        let limits = server.configuration
        let stated = [
            ("max-size", limits.maximumSize), ("max-append-size", limits.maximumAppendSize),
            ("min-append-size", limits.minimumAppendSize), ("max-age", limits.maximumAge),
        ].compactMap { name, value in value.map { "\(name)=\($0)" } }
        var fields = Headers()
        if let completes { fields[.uploadComplete] = StructuredField.text(completes) }
        if !stated.isEmpty { fields[.uploadLimit] = stated.joined(separator: ", ") }
        return fields
    }

    private func interim(_ fields: Headers) -> [OriginStep] {
        var fields = fields
        fields[.uploadInteropVersion] = "\(server.configuration.interopVersion)"
        return Status(ResumableUploads.statusCode).map { [.interim(.init($0, headers: fields))] } ?? []
    }

    // MARK: Server state

    private var upload: ResumableUploadServer.Upload? { server.state.withLock { $0.uploads[path] } }

    /// The current offset of the upload if this request is still the one that adds to it; otherwise `nil`.
    private var ownOffset: Int64? {
        server.state.withLock { [path, number] state in
            guard let upload = state.uploads[path], upload.owner?.number == number else { return nil }
            return Int64(upload.content.count)
        }
    }

    private func own() {
        number = server.state.withLock { [path, connection] state in
            state.owners += 1
            state.uploads[path]?.owner = (state.owners, connection)
            return state.owners
        }
        nextProgress = server.configuration.progressStep ?? .max
    }

    /// Ends the request in progress for this upload, which the client considers failed (§4.6).
    private func interrupt() {
        let ongoing = server.state.withLock { [path] state in
            defer { state.uploads[path]?.owner = nil }
            return state.uploads[path]?.owner?.connection
        }
        if let ongoing, ongoing !== connection { ongoing.end() }
    }

    private func note(offset: Int64, completes: Bool) {
        transfer = server.state.withLock { [path, request] state in
            state.transfers.append(
                .init(method: request.method, path: path, offset: offset, count: 0, completes: completes))
            return state.transfers.count - 1
        }
    }

    private func count(_ bytes: Int) {
        guard let transfer else { return }
        server.state.withLock { $0.transfers[transfer].count += Int64(bytes) }
    }

    /// Removes and returns the first fault of a point.
    private func faults(at point: ResumableUploadServer.Fault.Point) -> [OriginStep] {
        let fault = server.state.withLock { state in
            state.faults.firstIndex { $0.point == point }.map { state.faults.remove(at: $0) }
        }
        switch fault?.effect {
        case nil: return []
        case .connection(let effect): return [.fault(effect)]
        case .status(let code, let fields):
            var headers = Headers()
            for index in stride(from: 0, to: fields.count - 1, by: 2) {
                headers.append(FieldName(fields[index]), fields[index + 1])
            }
            return Status(code).map { [.answer(.status($0, headers: headers))] } ?? []
        }
    }
}
