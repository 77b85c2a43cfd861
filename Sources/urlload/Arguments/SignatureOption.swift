// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import URLLoading

/// The value of `--aws-sigv4`: `PROVIDER1[:PROVIDER2[:REGION[:SERVICE]]]`, as in curl.
struct SignatureOption: Sendable, Hashable {
    private let names: AWSSigner.Names
    private let region: String?
    private let service: String?

    init(_ text: String) throws(UsageError) {
        let parts = (text.isEmpty ? "aws:amz" : text).split(separator: ":", omittingEmptySubsequences: false)
        func part(_ index: Int) -> String? {
            guard index < parts.count, !parts[index].isEmpty else { return nil }
            return String(parts[index])
        }
        let isWord = parts.allSatisfy { part in
            part.utf8.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
            }
        }
        guard let vendor = part(0), parts.count <= 4, isWord else {
            throw UsageError("--aws-sigv4 takes PROVIDER1[:PROVIDER2[:REGION[:SERVICE]]], such as aws:amz:us-east-1:s3")
        }
        names = AWSSigner.Names(vendor: vendor, prefix: part(1) ?? vendor)
        (region, service) = (part(2), part(3))
    }

    /// The decision that signs the requests to the servers of the URLs.
    /// - Parameter credentials: the key of `-u`; `nil` for that of the environment or the profile.
    func decisions(_ credentials: AWSCredentials?) -> Decisions {
        var decisions = Decisions()
        decisions.sign = Decision { request in
            // The host of a redirect need not name a region.
            guard !request.isForeign else { return .none }
            let host = request.url.host() ?? ""
            let place = try scope(of: host)
            let found = if let credentials { credentials } else { try await AWSCredentials.find() }
            var signer = AWSSigner(credentials: found, region: place.region, service: place.service)
            signer.names = names
            // The body of a pipe has no digest before it is sent: only TLS protects it.
            guard !request.hasUnreadableBody || request.url.scheme?.lowercased() == "https" else {
                throw OutputError(.usage, "--aws-sigv4 cannot sign the body of a pipe over http; use https, or a file")
            }
            signer.payload = request.hasUnreadableBody ? .unsigned : .signed
            return try await signer.signature(of: request)
        }
        return decisions
    }

    /// The region and the service, where they are not given those that a host such as `s3.eu-central-1.amazonaws.com`
    /// begins with.
    func scope(of host: String) throws(OutputError) -> (region: String, service: String) {
        let labels = host.split(separator: ".").map(String.init)
        // As in curl, the region follows the service, and neither is the end of the name.
        guard let service = service ?? (labels.count > 1 ? labels[0] : nil),
            let region = region ?? (labels.count > 2 ? labels[1] : nil)
        else {
            throw OutputError(.usage, "--aws-sigv4 needs a region and a service, which the host \(host) does not name")
        }
        return (region, service)
    }
}

extension LoginOptions {
    /// The decisions of a session that signs its requests; nil without `--aws-sigv4`.
    var signing: Decisions? {
        signature?.decisions(user.map { AWSCredentials(accessKey: $0, secretKey: password ?? "") })
    }
}
