/// When a program is started because its transfers have something to say. Pure: times are nanoseconds of one clock.
///
/// One start at a time for an identifier; 1 s after the first, doubled up to 1 h while the program acknowledges nothing.
struct WakePlan: Sendable, Equatable {
    private(set) var starts = 0
    private(set) var next: Int64?
    private var isRunning = false

    static let first: Int64 = 1_000_000_000
    static let longest: Int64 = 3_600_000_000_000

    init() {}

    /// There are events, and no session has the identifier.
    /// - Returns: whether the program is to be started now.
    mutating func hasEvents(now: Int64) -> Bool {
        guard !isRunning else { return false }
        if let next, now < next { return false }
        isRunning = true
        starts += 1
        let doublings = min(starts - 1, 30)
        next = now + min(Self.first << Int64(doublings), Self.longest)
        return true
    }

    /// The program that was started has ended, or could not be started.
    mutating func ended() { isRunning = false }

    /// The program has acknowledged an event: it works.
    mutating func acknowledged() { (starts, next) = (0, nil) }
}
