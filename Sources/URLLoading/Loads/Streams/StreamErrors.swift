// SPDX-License-Identifier: Apache-2.0

// Reasons of failure that only streams have.

extension LoadError.Reason {
    /// Another task already reads or writes this side: a stream has one reader and one writer at a time.
    public static let streamBusy = Self("streamBusy", -1)
    /// This side of the stream was closed by this program.
    public static let streamClosed = Self("streamClosed", -1005)
    /// A read or write exceeded the timeout given by its caller. The stream continues.
    public static let streamCallTimeout = Self("streamCallTimeout", -1001)
    /// An earlier write was abandoned after part of it was sent. How much of it the peer received is unknown, so
    /// nothing may be written after it.
    public static let writeIncomplete = Self("writeIncomplete", -1005)
}
