// SPDX-License-Identifier: Apache-2.0

/// The key and the type of a value that a caller or a handler attaches to a request or a response.
///
/// ```swift
/// enum Tenant: PropertyKey { typealias Value = String }
/// request.properties[Tenant.self] = "north"
/// ```
public protocol PropertyKey {
    /// The type of the values under this key.
    associatedtype Value: Sendable
}

/// The values attached to a request or a response, by key. They are never sent.
public struct Properties: Sendable {
    private var values: [ObjectIdentifier: any Sendable]?

    /// Creates properties without values.
    public init() {}

    /// The value for a key; `nil` removes it.
    public subscript<Key: PropertyKey>(_ key: Key.Type) -> Key.Value? {
        get { values?[ObjectIdentifier(key)] as? Key.Value }
        set {
            guard let newValue else {
                values?[ObjectIdentifier(key)] = nil
                return
            }
            values = values ?? [:]
            values?[ObjectIdentifier(key)] = newValue
        }
    }

    /// The number of values.
    public var count: Int { values?.count ?? 0 }
}
