// SPDX-License-Identifier: Apache-2.0

extension WireViolation.Code {
    /// A frame of the background agent's protocol whose length, header or fields are out of grammar.
    public static let malformedAgentFrame = Self(rawValue: "malformedAgentFrame")
    /// A frame of the background agent's protocol beyond 1 MiB.
    public static let agentFrameTooLarge = Self(rawValue: "agentFrameTooLarge")
    /// A message of the background agent's protocol lacks a required field, or a field has an invalid value.
    public static let malformedAgentMessage = Self(rawValue: "malformedAgentMessage")
    /// A frame arrived with another number of descriptors than its header states.
    public static let wrongDescriptorCount = Self(rawValue: "wrongDescriptorCount")
    /// The peer of the background agent's protocol supports no common version.
    public static let noCommonAgentVersion = Self(rawValue: "noCommonAgentVersion")
}
