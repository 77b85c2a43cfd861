// SPDX-License-Identifier: Apache-2.0

// The user-facing description of errors: `localizedDescription`.

import Foundation

enum ErrorSentences {
    /// Returns a sentence without technical terms for a code of `NSURLErrorDomain`.
    static func sentence(for code: Int) -> String { sentences[code] ?? "The load has failed." }

    private static let sentences: [Int: String] = [
        -999: "The load was cancelled.",
        -1000: "The address is not valid.",
        -1001: "The server took too long to answer.",
        -1002: "This kind of address is not supported.",
        -1003: "No server with this name was found.",
        -1004: "The server could not be reached.",
        -1005: "The connection to the server was lost.",
        -1006: "The name of the server could not be looked up.",
        -1007: "The server redirected too many times.",
        -1008: "The resource is not available.",
        -1009: "There is no connection to the internet.",
        -1010: "The server redirected to an address that cannot be loaded.",
        -1011: "The answer of the server could not be understood.",
        -1012: "The login was cancelled.",
        -1013: "A user name and a password are required.",
        -1014: "The server answered without any data.",
        -1015: "The data of the answer could not be decoded.",
        -1016: "The content of the answer could not be decoded.",
        -1017: "The answer is not what was expected.",
        -1018: "International roaming is switched off.",
        -1019: "The network cannot be used during a call.",
        -1020: "The network may not be used for data now.",
        -1021: "The data to send could not be read.",
        -1022: "The address must be loaded over a secure connection.",
        -1100: "The file was not found.",
        -1101: "The address is that of a folder and not of a file.",
        -1102: "The file may not be read.",
        -1103: "The answer is too large.",
        -1200: "A secure connection to the server could not be made.",
        -1201: "The certificate of the server has expired.",
        -1202: "The certificate of the server is not valid.",
        -1203: "The certificate of the server comes from an unknown authority.",
        -1204: "The certificate of the server is not valid yet.",
        -1205: "The server refused the certificate of this program.",
        -1206: "The server requires a certificate of this program.",
        -2000: "The resource could not be loaded from the network.",
        -3000: "The file could not be created.",
        -3001: "The file could not be opened.",
        -3002: "The file could not be closed.",
        -3003: "The file could not be written.",
        -3004: "The file could not be removed.",
        -3005: "The file could not be moved.",
        -3006: "The download could not be decoded.",
        -3007: "The download could not be decoded to its end.",
    ]
}

extension URLError {
    /// Creates an error that did not come from a load of the core, with its description.
    static func described(_ code: Code, _ information: [String: Any] = [:]) -> URLError {
        let sentence = ErrorSentences.sentence(for: code.rawValue)
        return URLError(code, userInfo: information.merging([NSLocalizedDescriptionKey: sentence]) { own, _ in own })
    }
}
