extension Contender {
    /// The classic shape, beside an async handle with an empty hop over a queue of its kind: what it costs
    /// beyond the queue is the difference.
    static let classicShapes =
        ["queuehop", "queuehop2", "handler", "delegate"].map {
            Contender(name: $0, executable: "classic", environment: ["CLASSIC_SHAPE": $0])
        }
        // With the cache and the cookies that sessions have by default.
        + ["handler", "delegate"].map {
            Contender(
                name: $0 + "-keeps", executable: "classic",
                environment: ["CLASSIC_SHAPE": $0, "CLASSIC_REMEMBERS": "1"])
        }
        // The same programs with FoundationNetworking.
        + [
            Contender(name: "fnet", executable: "fnet", weight: 0.06),
            Contender(name: "fnet-delegate", executable: "fnet", environment: ["FNET_DELEGATE": "1"], weight: 0.06),
        ]
}
