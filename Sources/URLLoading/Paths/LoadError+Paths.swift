// Connections that were not made because somebody forbade them.

extension LoadError.Reason {
    /// ``Configuration/addressPolicy`` refused every address of the host.
    public static let addressRefused = Self("addressRefused", -1004)
}
