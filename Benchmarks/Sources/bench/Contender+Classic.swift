extension Contender {
    /// The classic shape, beside an async handle with an empty hop over a queue of its kind: what it costs
    /// beyond the queue is the difference.
    static let classicShapes = ["queuehop", "queuehop2", "handler", "delegate"].map {
        Contender(name: $0, executable: "classic", environment: ["CLASSIC_SHAPE": $0])
    }
}
