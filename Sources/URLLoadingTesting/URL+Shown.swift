// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

extension URL {
    /// The URL as shown in messages, without userinfo, query and fragment, which often contain secrets.
    package var shown: String {
        var text = "\(scheme ?? ""):"
        if let host = host() { text += "//\(host)" }
        if let port { text += ":\(port)" }
        return text + path()
    }
}
