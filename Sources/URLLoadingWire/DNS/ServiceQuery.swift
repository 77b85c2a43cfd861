// SPDX-License-Identifier: Apache-2.0

/// A question to a name server for the HTTPS records of a name (RFC 9460), and what answers it.
///
/// ```swift
/// let query = ServiceQuery(name, id: .random(in: .min ... .max))
/// // …send `query.bytes`; for every datagram of the server:
/// switch query.reply(message) { … }
/// ```
package struct ServiceQuery: Sendable {
    package let name: DNSName
    package let id: UInt16

    package init(_ name: DNSName, id: UInt16) { (self.name, self.id) = (name, id) }

    private static let recordType: UInt16 = 65
    private static let aliasType: UInt16 = 5
    private static let internet: UInt16 = 1
    /// The largest answer in one datagram that is asked for (RFC 6891 §6.2.5): a size that is not cut on its way.
    private static let answerSize: UInt16 = 1_232
    private static let mostRecords = 64
    private static let mostAliases = 8

    /// The message: a question that asks for recursion, and the size of answers (EDNS).
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        func add(_ numbers: UInt16...) {
            for number in numbers { bytes += [UInt8(number >> 8), UInt8(number & 0xFF)] }
        }
        add(id, 0x0100, 1, 0, 0, 1)
        bytes += name.bytes
        add(Self.recordType, Self.internet)
        bytes += DNSName.root.bytes
        add(41, Self.answerSize, 0, 0, 0)
        return bytes
    }

    /// What a message is to this question.
    package enum Reply: Sendable, Equatable {
        /// It does not answer the question, or is malformed: the answer may still come.
        case unrelated
        /// The answer is too large for a datagram.
        case truncated
        /// The server does not say; another one may.
        case refused
        case answer(ServiceAnswer)
    }

    /// Reads a message.
    package func reply(_ message: [UInt8]) -> Reply {
        var reader = DNSReader(message)
        guard reader.number16() == id, let flags = reader.number16(), reader.number16() == 1,
            let count = reader.number16(), reader.bytes(4) != nil, flags & 0xF800 == 0x8000,
            reader.name() == name, reader.number16() == Self.recordType, reader.number16() == Self.internet
        else { return .unrelated }
        if flags & 0x0200 != 0 { return .truncated }
        switch flags & 0xF {
        case 0: break
        // There is no such name.
        case 3: return .answer(ServiceAnswer(content: .none))
        default: return .refused
        }
        guard count <= Self.mostRecords, let section = Section(&reader, Int(count)) else { return .unrelated }
        return .answer(section.answer(to: name))
    }

    /// The records of an answer.
    private struct Section {
        private var records: [(owner: DNSName, lifetime: Int64, data: DNSReader)] = []
        private var aliases: [DNSName: (target: DNSName, lifetime: Int64)] = [:]

        init?(_ reader: inout DNSReader, _ count: Int) {
            for _ in 0..<count {
                guard let owner = reader.name(), let type = reader.number16(), let kind = reader.number16(),
                    let lifetime = reader.number32(), let size = reader.number16(),
                    let part = reader.range(Int(size))
                else { return nil }
                guard kind == ServiceQuery.internet else { continue }
                // A lifetime with the highest bit counts as none (RFC 2181 §8).
                let seconds = lifetime >> 31 == 0 ? Int64(lifetime) : 0
                var data = DNSReader(reader, part)
                switch type {
                case ServiceQuery.recordType: records.append((owner, seconds, data))
                case ServiceQuery.aliasType:
                    guard let target = data.name(), data.isAtEnd else { return nil }
                    aliases[owner] = (target, seconds)
                default: continue
                }
            }
        }

        /// Follows the aliases (CNAME) from a name to its records.
        func answer(to name: DNSName) -> ServiceAnswer {
            var (name, lifetime, steps) = (name, Int64.max, 0)
            while let alias = aliases[name], steps < ServiceQuery.mostAliases {
                (name, lifetime, steps) = (alias.target, min(lifetime, alias.lifetime), steps + 1)
            }
            var services: [ServiceRecord] = []
            for record in records where record.owner == name {
                var data = record.data
                // One that is malformed spoils all (RFC 9460 §2.2).
                guard let service = ServiceRecord(&data, of: name) else { return ServiceAnswer(content: .none) }
                services.append(service)
                lifetime = min(lifetime, record.lifetime)
            }
            guard !services.isEmpty else { return ServiceAnswer(content: .none) }
            // Beside an alias, other records are ignored (RFC 9460 §2.4.1).
            guard let alias = services.first(where: \.isAlias) else {
                return ServiceAnswer(content: .services(services), lifetime: lifetime)
            }
            return ServiceAnswer(content: alias.target == .root ? .none : .alias(alias.target), lifetime: lifetime)
        }
    }
}

/// What a name server has said of a name.
package struct ServiceAnswer: Sendable, Equatable {
    package enum Content: Sendable, Equatable {
        case none
        /// The records are those of another name (RFC 9460 §2.4.2).
        case alias(DNSName)
        case services([ServiceRecord])
    }
    package let content: Content
    /// How long the answer holds, in seconds; of an answer without records, the library's own choice.
    package let lifetime: Int64

    package init(content: Content, lifetime: Int64 = 300) { (self.content, self.lifetime) = (content, lifetime) }
}
