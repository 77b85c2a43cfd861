// SPDX-License-Identifier: Apache-2.0

// Parsers for the values of options. They throw ``UsageError``.

import URLLoading

enum OptionValue {
    static func count(_ text: String, _ option: String, from least: Int) throws(UsageError) -> Int {
        guard let number = Int(text), number >= least else {
            throw UsageError("\(option) takes a whole number from \(least), not \(text)")
        }
        return number
    }

    /// Parses seconds, such as `0.5` or `30`; greater than zero.
    static func seconds(_ text: String, _ option: String) throws(UsageError) -> Duration {
        guard let number = Double(text), number > 0, number < 1e9 else {
            throw UsageError("\(option) takes a number of seconds above 0, not \(text)")
        }
        return .seconds(number)
    }

    /// Parses seconds; `nil` for 0, which means no limit.
    static func secondsOrNone(_ text: String, _ option: String) throws(UsageError) -> Duration? {
        if let number = Double(text), number == 0 { return nil }
        return try seconds(text, option)
    }

    /// Parses statuses separated by commas.
    static func statuses(_ text: String, _ option: String) throws(UsageError) -> Set<Status> {
        var statuses: Set<Status> = []
        for word in text.split(separator: ",") {
            guard let status = Int(word).flatMap({ Status($0) }) else {
                throw UsageError("\(option) takes statuses such as 429,503, not \(text)")
            }
            statuses.insert(status)
        }
        return statuses
    }

    /// Parses `0-499`, `500-`, `-500`, or several with commas; a single number `N` means `N-`.
    static func range(_ text: String) throws(UsageError) -> String {
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        let range = isNumber ? text + "-" : text
        guard range.utf8.allSatisfy({ (0x30...0x39).contains($0) || [0x2C, 0x2D, 0x20].contains($0) }),
            range.contains("-")
        else { throw UsageError("-r takes a range of bytes, such as 0-499, not \(text)") }
        return range
    }

    static let allSchemes: Set<String> = ["http", "https", "ftp", "ftps", "file", "data"]

    /// Parses `=https`, `-all,https` or `+ftp`: the allowed schemes, beginning with `base`. Unknown schemes are
    /// ignored.
    static func schemes(_ text: String, from base: Set<String>) throws(UsageError) -> Set<String> {
        var schemes = base
        for word in text.lowercased().split(separator: ",") {
            let sign = word.first.flatMap { "+-=".contains($0) ? $0 : nil }
            let name = String(sign == nil ? word : word.dropFirst())
            guard !name.isEmpty, name.allSatisfy({ $0.isLetter || $0.isNumber }) else {
                throw UsageError("--proto takes schemes such as =https, not \(text)")
            }
            let meant = name == "all" ? allSchemes : allSchemes.intersection([name])
            switch sign {
            case "-": schemes.subtract(meant)
            case "=": schemes = meant
            default: schemes.formUnion(meant)
            }
        }
        return schemes
    }

    static func tlsVersion(_ text: String, _ option: String) throws(UsageError) -> Configuration.TLS.Version {
        switch text {
        case "1.0": .tls10
        case "1.1": .tls11
        case "1.2": .tls12
        case "1.3": .tls13
        default: throw UsageError("\(option) takes 1.0, 1.1, 1.2 or 1.3, not \(text)")
        }
    }

    /// Parses OpenSSL's default list of ciphers with a security level: `DEFAULT@SECLEVEL=0`. `nil` for level 2, the
    /// default.
    static func strength(
        _ text: String, _ option: String
    ) throws(UsageError) -> Configuration.TLS.UnsafeConcessions.Strength? {
        switch text.replacing("DEFAULT:@", with: "DEFAULT@") {
        case "DEFAULT@SECLEVEL=0": .any
        case "DEFAULT@SECLEVEL=1": .bits80
        case "DEFAULT", "DEFAULT@SECLEVEL=2": nil
        default: throw UsageError("\(option) takes DEFAULT@SECLEVEL=0, 1 or 2: ciphers cannot be chosen one by one")
        }
    }

    /// Parses `Name: value`. The value may be empty, the name may not. The error does not contain the value, which may
    /// be a secret.
    static func field(_ text: String, _ option: String = "-H") throws(UsageError) -> (FieldName, String) {
        guard let colon = text.firstIndex(of: ":") else {
            throw UsageError("\(option) takes 'Name: value', and there is no colon in it")
        }
        let name = FieldName(String(text[..<colon]))
        guard name.isValid else { throw UsageError("'\("\(name)".prefix { $0 != " " })' is no field name") }
        let value = text[text.index(after: colon)...]
        // Compares Unicode scalars: CR LF is one `Character`.
        guard !value.unicodeScalars.contains(where: { $0 == "\r" || $0 == "\n" || $0 == "\0" }) else {
            throw UsageError("the value of \(name) contains a line break")
        }
        return (name, String(value.drop { $0 == " " || $0 == "\t" }))
    }
}
