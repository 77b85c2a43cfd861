// SPDX-License-Identifier: Apache-2.0

// Removes secrets from recordings.

import FoundationEssentials
public import URLLoadingWire

/// How a ``RecordingHandler`` treats secrets.
public enum RecordedSecrets: Sendable, Hashable {
    /// Replaces the values of fields that hold credentials, such as Authorization, Cookie and X-Api-Key (the guide on
    /// metrics lists them), and of the given fields, by `(removed)`; removes userinfo from URLs, also within fields.
    /// Paths, queries and bodies are kept: review a recording before you publish it.
    case removed(and: Set<FieldName> = [])
    /// Records everything unchanged.
    case kept

    static let replacement = Secrets.mark

    func stripped(_ headers: Headers) -> Headers {
        guard case .removed(let more) = self else { return headers }
        var result = Headers()
        for index in headers.indices {
            let name = headers[index].name
            guard !name.isSecret, !more.contains(name) else {
                result.append(name, Self.replacement)
                continue
            }
            headers.withField(at: index) { name, value in
                [UInt8](value).withoutUserinfo.withUnsafeBytes { result.appendRaw(name: name, value: $0) }
            }
        }
        return result
    }

    func stripped(_ url: URL) -> URL {
        guard case .removed = self else { return url }
        return url.withoutUserinfo
    }

    func stripped(_ text: String) -> String {
        guard case .removed = self else { return text }
        return String(decoding: Array(text.utf8).withoutUserinfo, as: UTF8.self)
    }
}

extension URL {
    var withoutUserinfo: URL {
        guard absoluteString.utf8.contains(UInt8(ascii: "@")) else { return self }
        return URL(string: String(decoding: Array(absoluteString.utf8).withoutUserinfo, as: UTF8.self)) ?? self
    }
}
