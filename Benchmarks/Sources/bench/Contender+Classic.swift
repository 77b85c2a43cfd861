// SPDX-License-Identifier: Apache-2.0

extension Contender {
    /// The classic API, compared with an async handle plus an empty operation on a queue of the same kind: the
    /// difference is its cost beyond the queue.
    static let classicShapes =
        ["queuehop", "queuehop2", "handler", "delegate", "async", "async-subclass"].map {
            Contender(name: $0, executable: "classic", environment: ["CLASSIC_SHAPE": $0])
        }
        // With the cache and the cookies of the default session configuration.
        + ["handler", "delegate"].map {
            Contender(
                name: $0 + "-keeps", executable: "classic",
                environment: ["CLASSIC_SHAPE": $0, "CLASSIC_REMEMBERS": "1"])
        }
        // The same programs built with FoundationNetworking.
        + [
            Contender(name: "fnet", executable: "fnet", weight: 0.06),
            Contender(name: "fnet-delegate", executable: "fnet", environment: ["FNET_DELEGATE": "1"], weight: 0.06),
        ]
}
