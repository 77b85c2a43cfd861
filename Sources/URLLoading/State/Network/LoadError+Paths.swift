// SPDX-License-Identifier: Apache-2.0

// The errors of connections that a policy forbids.

extension LoadError.Reason {
    /// ``Configuration/Networks/addressPolicy`` refused every address of the host.
    public static let addressRefused = Self("addressRefused", -1004)
    /// ``Configuration/Networks/allowsCellular``, or the request's own setting, is false, and the route to the host
    /// uses a mobile network.
    public static let notAllowedOnCellularNetwork = Self("notAllowedOnCellularNetwork", -1020)
    /// ``Configuration/Networks/allowsExpensive``, or the request's own setting, is false, and the network is
    /// metered: ``NetworkPath/isExpensive``.
    public static let notAllowedOnExpensiveNetwork = Self("notAllowedOnExpensiveNetwork", -1020)
    /// ``Configuration/Networks/allowsConstrained``, or the request's own setting, is false, and the user wants
    /// little traffic: ``NetworkPath/isConstrained``.
    public static let notAllowedOnConstrainedNetwork = Self("notAllowedOnConstrainedNetwork", -1020)
}
