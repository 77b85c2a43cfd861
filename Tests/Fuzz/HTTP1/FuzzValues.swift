// SPDX-License-Identifier: Apache-2.0

import URLLoadingWire

func fuzzReferences(_ bytes: [UInt8]) {
    fuzzReference(bytes, repairing: false)
    fuzzReference(bytes, repairing: true)
    fuzzHost(String(decoding: bytes, as: UTF8.self))
}

private func fuzzReference(_ bytes: [UInt8], repairing: Bool) {
    guard let reference = try? URIReference(bytes: bytes, repairing: repairing) else { return }
    let text = reference.absoluteString
    promise((try? URIReference(text)) == reference, "a reference reads as itself")
    promise(!text.utf8.contains { $0 < 0x21 || $0 == 0x7F || $0 == UInt8(ascii: "\\") }, "nothing illegal survives")
    if let base = try? URIReference("http://a/b/c/d;p?q"), let resolved = try? base.resolve(reference) {
        promise((try? URIReference(resolved.absoluteString)) == resolved, "a resolved reference reads as itself")
        promise(!resolved.description.isEmpty, "a resolved reference has a scheme")
        _ = try? Target(resolved)
    }
    guard let target = try? Target(reference) else { return }
    promise(target.originForm.first == UInt8(ascii: "/"), "a target begins with a slash")
    promise(target.originForm.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a target can be sent")
    promise(target.hostField.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a host can be sent")
    let again = try? Target(String(decoding: target.absoluteForm, as: UTF8.self))
    if case .ipv6(_, .some) = target.origin.host.kind { return }  // The zone is not sent.
    promise(again?.origin == target.origin, "what is sent names the same origin")
    promise(again?.originForm == target.originForm, "what is sent names the same resource")
}

private func fuzzHost(_ text: String) {
    guard let host = try? Origin.Host(text) else { return }
    promise((try? Origin.Host(host.description)) == host, "a normal form is normal")
    promise(host.description.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a normal form is ASCII")
    if let name = host.dnsName { promise(name.utf8.count <= 253 && !name.isEmpty, "a name fits DNS") }
}

func fuzzValues(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    if let type = MediaType(text) { promise(MediaType(type.description) == type, "a media type reads as itself") }
    for now in [HTTPDate(secondsSince1970: 0), HTTPDate(secondsSince1970: .max), HTTPDate(secondsSince1970: .min)] {
        guard let date = HTTPDate(text, now: now) else { continue }
        promise(HTTPDate(date.description) == date, "a date reads as itself")
    }
    fuzzSending(bytes)
}

/// Whatever a caller asks for: what is sent is read as exactly that by our own server.
private func fuzzSending(_ bytes: [UInt8]) {
    let parts = bytes.split(separator: 0xFF, maxSplits: 6, omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self) }
    guard parts.count >= 4 else { return }
    var headers = Headers()
    for index in stride(from: 2, to: parts.count - 1, by: 2) {
        headers.append(FieldName(parts[index]), parts[index + 1])
    }
    var codec = HTTP1Codec(role: .client)
    var output: [UInt8] = []
    do throws(WireViolation) {
        try codec.sendRequest(
            method: Method(parts[0]), target: Array(parts[1].utf8), host: Array("h".utf8), headers: headers,
            framing: .none, into: &output)
    } catch {
        promise(error.party == .local && output.isEmpty, "a refused request leaves nothing")
        return
    }
    // Values were trimmed and lengths may be refused when read; but never two requests out of one.
    var server = HTTP1Codec(role: .server)
    var consumed = 0
    let event = output.withUnsafeBytes { try? server.next($0, consumed: &consumed) }
    guard let event, case .request(let head) = event else {
        return promise(output.count > 64 * 1024 || headers.count > 250, "our own server reads it")
    }
    promise(consumed == output.count, "one request is one request")
    promise(head.method.rawValue == parts[0] && head.target == parts[1], "the request line arrives")
    for field in headers where field.name != .host && field.name != .contentLength {
        promise(head.headers.values(of: field.name) == headers.values(of: field.name), "a field arrives")
    }
}
