// SPDX-License-Identifier: Apache-2.0

private let (task, path) = (session.dataTask(from: url), "")
