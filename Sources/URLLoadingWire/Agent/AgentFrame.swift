// SPDX-License-Identifier: Apache-2.0

/// One frame of the protocol between a program and the background agent (docs/guides/background.md).
///
/// A frame is a length (u32, of the rest of the frame), a kind (u16), the number of descriptors sent with it (u8), an
/// id (u32) and ``AgentFields``. Numbers are big-endian. A response has the id of its request; messages without a
/// request have the id 0.
package struct AgentFrame: Sendable, Equatable {
    package let kind: UInt16
    package let id: UInt32
    /// The number of file descriptors sent with the frame, at most ``maximumDescriptors``.
    package let descriptorCount: Int
    package let fields: AgentFields

    /// The maximum size of a frame in bytes, including its length field.
    package static let largest = 1 << 20
    package static let maximumDescriptors = 2
    /// The size of a frame without fields, not including the length field.
    private static let smallest = 7

    package init(kind: UInt16, id: UInt32, descriptorCount: Int = 0, fields: AgentFields) {
        self.kind = kind
        self.id = id
        self.descriptorCount = descriptorCount
        self.fields = fields
    }

    /// Returns the frame in wire format.
    /// - Throws: ``WireViolation/Code/agentFrameTooLarge``, ``WireViolation/Code/wrongDescriptorCount``, of the local
    ///   party.
    package func encoded() throws(WireViolation) -> [UInt8] {
        let length = Self.smallest + fields.size
        guard length + 4 <= Self.largest else { throw .local(.agentFrameTooLarge, "") }
        guard (0...Self.maximumDescriptors).contains(descriptorCount) else { throw .local(.wrongDescriptorCount, "") }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length + 4)
        bytes.append(bigEndian: UInt32(length))
        bytes.append(bigEndian: kind)
        bytes.append(UInt8(descriptorCount))
        bytes.append(bigEndian: id)
        fields.append(to: &bytes)
        return bytes
    }

    /// Reads a frame without its length field.
    fileprivate init(_ bytes: ArraySlice<UInt8>) throws(WireViolation) {
        kind = UInt16(truncatingIfNeeded: bytes.bigEndian(2))
        descriptorCount = Int(bytes.dropFirst(2).bigEndian(1))
        id = UInt32(truncatingIfNeeded: bytes.dropFirst(3).bigEndian(4))
        guard descriptorCount <= Self.maximumDescriptors else { throw .remote(.wrongDescriptorCount, "") }
        fields = try AgentFields(bytes.dropFirst(Self.smallest))
    }

    /// Reads a length field, and checks it.
    fileprivate static func length(_ bytes: ArraySlice<UInt8>) throws(WireViolation) -> Int {
        let length = Int(bytes.bigEndian(4))
        guard length >= smallest else { throw .remote(.malformedAgentFrame, "") }
        guard length + 4 <= largest else { throw .remote(.agentFrameTooLarge, "") }
        return length
    }
}

/// Splits received bytes into frames. Buffers at most one frame and the bytes received after it.
package struct AgentFrameDecoder: Sendable {
    private var buffer: [UInt8] = []
    private var start = 0
    private var violation: WireViolation?

    package init() {}

    package mutating func receive(_ bytes: some Sequence<UInt8>) {
        guard violation == nil else { return }
        if start > 0 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer += bytes
    }

    /// Returns the next complete frame; `nil` until more bytes arrive.
    /// - Throws: ``WireViolation``, again at each later call: the connection cannot be used any more.
    package mutating func next() throws(WireViolation) -> AgentFrame? {
        if let violation { throw violation }
        do throws(WireViolation) { return try nextFrame() } catch {
            violation = error
            buffer = []
            start = 0
            throw error
        }
    }

    private mutating func nextFrame() throws(WireViolation) -> AgentFrame? {
        let rest = buffer[start...]
        guard rest.count >= 4 else { return nil }
        let length = try AgentFrame.length(rest)
        guard rest.count >= 4 + length else { return nil }
        start += 4 + length
        return try AgentFrame(rest.dropFirst(4).prefix(length))
    }

    /// True if the bytes ended within a frame.
    package var isInFrame: Bool { violation == nil && start < buffer.count }
}
