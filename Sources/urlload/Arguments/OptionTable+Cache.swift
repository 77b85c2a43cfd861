import URLLoading

extension OptionTable {
    static let cache: [OptionRule] = [
        OptionRule(
            .cache, nil, "cache", "DIR", "keep responses in DIR, and answer from there what HTTP allows; -v says why"
        ) {
            $0.cacheDirectory = $1
        },
        OptionRule(
            .cache, nil, "policy", "NAME", "protocol (default), reload, reload-all, revalidate, stored, stored-only"
        ) { (options, text) throws(UsageError) in
            guard let policy = policies[text] else {
                throw UsageError("--policy: \(text) is none of \(policies.keys.sorted().joined(separator: ", "))")
            }
            options.cachePolicy = policy
        },
    ]

    private static let policies: [String: Request.CachePolicy] = [
        "protocol": .useProtocol, "reload": .reload, "reload-all": .reloadIgnoringCaches, "revalidate": .revalidate,
        "stored": .storedElseLoad, "stored-only": .storedOnly,
    ]
}
