// SPDX-License-Identifier: Apache-2.0

// One item of `urlload http METHOD URL ITEM…`: `Name:field`, `NAME==QUERY`, `NAME=TEXT`, `NAME:=JSON`, `NAME@FILE`,
// `NAME=@FILE`, `NAME:=@FILE` or `Name:@FILE`. A backslash escapes a separator.

struct HTTPieItem: Sendable, Hashable {
    enum Mark: String, Sendable, CaseIterable {
        case jsonFile = ":=@", query = "==", json = ":=", textFile = "=@", fieldFile = ":@", queryFile = "==@"
        case text = "=", field = ":", file = "@"
    }
    var name: String
    var mark: Mark
    var value: String

    /// - Throws: ``UsageError`` for an argument without a separator.
    init(_ word: String) throws(UsageError) {
        var name = ""
        var rest = word[...]
        while let character = rest.first {
            if character == "\\", let escaped = rest.dropFirst().first {
                name.append(contentsOf: "=:@".contains(escaped) ? "\(escaped)" : "\\\(escaped)")
                rest = rest.dropFirst(2)
                continue
            }
            if character == ";", rest.count == 1, !name.isEmpty {
                (self.name, mark, value) = (name, .field, ";")
                return
            }
            // The longest separator that begins here: `:=` before `:`.
            let marks = Mark.allCases.filter { rest.hasPrefix($0.rawValue) }
            if let mark = marks.max(by: { $0.rawValue.count < $1.rawValue.count }) {
                (self.name, self.mark) = (name, mark)
                value = String(rest.dropFirst(mark.rawValue.count))
                return
            }
            name.append(character)
            rest = rest.dropFirst()
        }
        throw UsageError(
            "\(word) is no item: NAME=TEXT, NAME:=JSON, NAME==QUERY, Name:field and NAME@FILE are")
    }

    static func isItem(_ word: String) -> Bool { (try? HTTPieItem(word)) != nil }
}

/// A JSON object that is built from items, whose names may be paths: `a[b][]=1`.
struct JSONTree {
    indirect enum Node {
        case object([(name: String, node: Node)])
        case list([Node])
        case leaf(String)
    }
    private(set) var root = Node.object([])

    /// - Parameter json: the value, as JSON.
    mutating func set(_ name: String, _ json: String) throws(UsageError) {
        guard let path = Self.path(name) else { throw UsageError("\(name): a bracket is missing") }
        guard let changed = Self.setting(root, path[...], json) else {
            throw UsageError("\(name): an earlier item has set another value there")
        }
        root = changed
    }

    /// Splits `a[b][0][]` into `a`, `b`, `0` and an empty name; `nil` for unbalanced brackets.
    static func path(_ name: String) -> [String]? {
        guard let open = name.firstIndex(of: "[") else { return [name] }
        var path = name[..<open].isEmpty ? [] : [String(name[..<open])]
        var rest = name[open...]
        while !rest.isEmpty {
            guard rest.first == "[", let close = rest.firstIndex(of: "]") else { return nil }
            path.append(String(rest[rest.index(after: rest.startIndex)..<close]))
            rest = rest[rest.index(after: close)...]
        }
        return path
    }

    private static func setting(_ node: Node?, _ path: ArraySlice<String>, _ json: String) -> Node? {
        guard let name = path.first else { return .leaf(json) }
        let rest = path.dropFirst()
        switch node {
        case .leaf: return nil
        case .list(var nodes):
            let index = name.isEmpty ? nodes.count : Int(name) ?? -1
            guard index >= 0, index <= nodes.count + 1000 else { return nil }
            while nodes.count <= index { nodes.append(.leaf("null")) }
            let old: Node? = if case .leaf("null") = nodes[index] { nil } else { nodes[index] }
            guard let changed = setting(old, rest, json) else { return nil }
            nodes[index] = changed
            return .list(nodes)
        case .object(var members):
            let index = members.firstIndex { $0.name == name }
            guard let changed = setting(rest.isEmpty ? nil : index.map { members[$0].node }, rest, json) else {
                return nil
            }
            if let index { members[index].node = changed } else { members.append((name, changed)) }
            return .object(members)
        case nil:
            let isList = name.isEmpty || Int(name) != nil
            return setting(isList ? .list([]) : .object([]), path, json)
        }
    }

    var text: String { Self.text(root) }

    private static func text(_ node: Node) -> String {
        switch node {
        case .leaf(let json): json
        case .list(let nodes): "[" + nodes.map(text).joined(separator: ", ") + "]"
        case .object(let members):
            "{" + members.map { JSONText.text($0.name).description + ": " + text($0.node) }.joined(separator: ", ")
                + "}"
        }
    }
}
