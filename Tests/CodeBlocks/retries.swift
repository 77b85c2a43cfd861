// SPDX-License-Identifier: Apache-2.0

private let (policy, prefetched, visible) = (RetryPolicy(), file, file)
private let (recorder, origin) = (EventRecorder(), HTTPTestServer?.none!)
private let task = session.dataTask(from: url)
