/// The name of something a caller or a handler attaches to a request or a response, and its type.
///
/// ```swift
/// enum Tenant: PropertyKey { typealias Value = String }
/// request.properties[Tenant.self] = "north"
/// ```
public protocol PropertyKey {
    associatedtype Value: Sendable
}

/// What is attached to a request or a response, for whoever knows the key. It is never sent.
public struct Properties: Sendable {
    private var values: [ObjectIdentifier: any Sendable]?

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
