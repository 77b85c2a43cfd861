// SPDX-License-Identifier: Apache-2.0

/// The streams of one connection by their number.
///
/// A client counts its streams upwards in steps of two (RFC 9113 §5.1.1), so those in use have numbers side by side, and
/// the number itself chooses the place in a table. A dictionary computes a hash for each of some 18 questions a request.
package struct HTTP2StreamTable<Stream: AnyObject> {
    fileprivate struct Place {
        /// 0, the number of the connection itself, where no stream is.
        var number: Int32 = 0
        var stream: Stream?
    }

    /// A power of two, at least twice as many as streams, so that a search ends at a place without one.
    private var places = [Place](repeating: Place(), count: 16)
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// In no order, as ``numbers``.
    package var streams: [Stream] { places.compactMap(\.stream) }
    package var numbers: [Int32] { places.compactMap { $0.number == 0 ? nil : $0.number } }

    package subscript(number: Int32) -> Stream? {
        get {
            let place = place(of: number)
            return places[place].number == number ? places[place].stream : nil
        }
        set {
            if let newValue { insert(newValue, number) } else { remove(number) }
        }
    }

    /// Returns the stream that is removed; nil if there was none.
    @discardableResult
    package mutating func remove(_ number: Int32) -> Stream? {
        var hole = place(of: number)
        guard number != 0, places[hole].number == number else { return nil }
        let removed = places[hole].stream
        count -= 1
        // The streams behind it move up, or a search for them would end at the hole.
        var next = hole
        while true {
            next = (next + 1) & (places.count - 1)
            guard places[next].number != 0 else { break }
            let distance = (next &- first(for: places[next].number)) & (places.count - 1)
            guard distance >= (next &- hole) & (places.count - 1) else { continue }
            places[hole] = places[next]
            hole = next
        }
        places[hole] = Place()
        return removed
    }

    private mutating func insert(_ stream: Stream, _ number: Int32) {
        guard number != 0 else { return }
        var place = place(of: number)
        if places[place].number == 0 {
            if count * 2 >= places.count {
                grow()
                place = self.place(of: number)
            }
            count += 1
        }
        places[place] = Place(number: number, stream: stream)
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: Place(), count: old.count * 2)
        for moved in old where moved.number != 0 { places[place(of: moved.number)] = moved }
    }

    /// The place of a stream, or the one that it would take.
    private func place(of number: Int32) -> Int {
        var place = first(for: number)
        while places[place].number != 0, places[place].number != number { place = (place + 1) & (places.count - 1) }
        return place
    }

    private func first(for number: Int32) -> Int { Int(number >> 1) & (places.count - 1) }
}

extension HTTP2StreamTable.Place: Sendable where Stream: Sendable {}
extension HTTP2StreamTable: Sendable where Stream: Sendable {}
