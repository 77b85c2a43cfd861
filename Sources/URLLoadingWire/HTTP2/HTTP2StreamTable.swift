// SPDX-License-Identifier: Apache-2.0

/// The streams of one connection by their number.
///
/// A client counts its streams upwards in steps of two (RFC 9113 §5.1.1), so those in use have numbers side by side,
/// and the number itself chooses the place in a table. A dictionary computes a hash for each of a dozen questions a
/// request.
///
/// A stream whose place is taken lies behind it, never behind one that is nearer to its own place than it would be. So
/// a search ends at the first one that is nearer, and a removal moves only what is not at its place.
struct HTTP2StreamTable<Stream: AnyObject> {
    private struct Place {
        /// 0, the number of the connection itself, where no stream is.
        var number: Int32 = 0
        var stream: Stream?
    }

    /// A power of two, at least twice as many as streams.
    private var places = [Place](repeating: Place(), count: 16)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// In no order, as ``numbers``.
    var streams: [Stream] { places.compactMap(\.stream) }
    var numbers: [Int32] { places.compactMap { $0.number == 0 ? nil : $0.number } }

    subscript(number: Int32) -> Stream? {
        get { find(number).flatMap { places[$0].stream } }
        set {
            guard let newValue else { return _ = remove(number) }
            if let place = find(number) { places[place].stream = newValue } else { insert(newValue, number) }
        }
    }

    /// Returns the stream that is removed; nil if there was none.
    @discardableResult
    mutating func remove(_ number: Int32) -> Stream? {
        guard var hole = find(number) else { return nil }
        let removed = places[hole].stream
        count -= 1
        while true {
            let next = after(hole)
            guard places[next].number != 0, distance(next) > 0 else { break }
            places[hole] = places[next]
            hole = next
        }
        places[hole] = Place()
        return removed
    }

    private func find(_ number: Int32) -> Int? {
        var place = first(for: number)
        var steps = 0
        while places[place].number != 0 {
            if places[place].number == number { return place }
            if distance(place) < steps { return nil }
            (place, steps) = (after(place), steps + 1)
        }
        return nil
    }

    private mutating func insert(_ stream: Stream, _ number: Int32) {
        guard number != 0 else { return }
        if count * 2 >= places.count {
            let old = places
            places = Array(repeating: Place(), count: old.count * 2)
            for moved in old where moved.number != 0 { put(moved) }
        }
        put(Place(number: number, stream: stream))
        count += 1
    }

    private mutating func put(_ added: Place) {
        var (added, place, steps) = (added, first(for: added.number), 0)
        while places[place].number != 0 {
            let other = distance(place)
            if other < steps {
                swap(&places[place], &added)
                steps = other
            }
            (place, steps) = (after(place), steps + 1)
        }
        places[place] = added
    }

    private func first(for number: Int32) -> Int { Int(number >> 1) & (places.count - 1) }
    private func after(_ place: Int) -> Int { (place + 1) & (places.count - 1) }

    /// How far a stream lies behind the place that its number chooses.
    private func distance(_ place: Int) -> Int { (place &- first(for: places[place].number)) & (places.count - 1) }
}
