extension WireViolation.Code {
    /// A frame of the background agent's protocol whose length, header or fields are out of grammar.
    public static let malformedAgentFrame = Self(rawValue: "malformedAgentFrame")
    /// A frame of the background agent's protocol beyond 1 MiB.
    public static let agentFrameTooLarge = Self(rawValue: "agentFrameTooLarge")
    /// A message of the background agent's protocol lacks a field, or a field has no possible value.
    public static let malformedAgentMessage = Self(rawValue: "malformedAgentMessage")
    /// A frame arrived with another number of descriptors than its header states.
    public static let wrongDescriptorCount = Self(rawValue: "wrongDescriptorCount")
    /// The other side of the background agent's protocol speaks no version in common.
    public static let noCommonAgentVersion = Self(rawValue: "noCommonAgentVersion")
}
