/// A table or an index as the sources define it: `CREATE TABLE name (…)`.
package struct SchemaPart: Sendable {
    package let name: String
    package let isTable: Bool
    package let text: StaticString

    package init(table name: String, _ text: StaticString) { (self.name, isTable, self.text) = (name, true, text) }
    package init(index name: String, _ text: StaticString) { (self.name, isTable, self.text) = (name, false, text) }

    /// Whether the text that SQLite keeps of it says the same, whatever the blanks.
    func isDefined(by other: String) -> Bool {
        func words(_ text: String) -> [Substring] { text.split(whereSeparator: \.isWhitespace) }
        return words("\(text)") == words(other)
    }
}
