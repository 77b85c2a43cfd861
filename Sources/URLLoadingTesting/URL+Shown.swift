package import FoundationEssentials

extension URL {
    /// The URL as messages show it: userinfo, query and fragment often carry secrets.
    package var shown: String {
        var text = "\(scheme ?? ""):"
        if let host = host() { text += "//\(host)" }
        if let port { text += ":\(port)" }
        return text + path()
    }
}
