// SPDX-License-Identifier: Apache-2.0

import URLLoading

extension OptionTable {
    static let cache: [OptionRule] = [
        OptionRule(
            .cache, nil, "cache", "DIR", "keep responses in DIR, and answer from there what HTTP allows; -v says why"
        ) {
            $0.caching.directory = $1
        },
        OptionRule(
            .cache, nil, "cache-policy", "NAME",
            "protocol (default), reload, reload-all, revalidate, cache-else-load, only-if-cached"
        ) { (options, text) throws(UsageError) in
            guard let policy = policies[text] else {
                throw UsageError("--cache-policy: \(text) is none of \(policies.keys.sorted().joined(separator: ", "))")
            }
            options.caching.policy = policy
        },
    ]

    private static let policies: [String: Request.CachePolicy] = [
        "protocol": .useProtocol, "reload": .reload, "reload-all": .reloadIgnoringCaches, "revalidate": .revalidate,
        "cache-else-load": .cacheElseLoad, "only-if-cached": .onlyIfCached,
    ]
}
