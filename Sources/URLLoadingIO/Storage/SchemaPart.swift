// SPDX-License-Identifier: Apache-2.0

/// A table or an index as the sources define it: `CREATE TABLE name (…)`.
package struct SchemaPart: Sendable {
    package let name: String
    package let isTable: Bool
    package let text: StaticString

    package init(table name: String, _ text: StaticString) { (self.name, isTable, self.text) = (name, true, text) }
    package init(index name: String, _ text: StaticString) { (self.name, isTable, self.text) = (name, false, text) }

    /// Returns whether the definition stored by SQLite is the same, apart from white space.
    func isDefined(by other: String) -> Bool {
        func words(_ text: String) -> [Substring] { text.split(whereSeparator: \.isWhitespace) }
        return words("\(text)") == words(other)
    }
}
