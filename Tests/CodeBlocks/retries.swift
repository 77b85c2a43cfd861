// SPDX-License-Identifier: Apache-2.0

private let (policy, prefetched, visible) = (RetryPolicy(), url, url)
private let (recorder, origin) = (EventRecorder(), stage.origin)
