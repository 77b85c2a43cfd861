// SPDX-License-Identifier: Apache-2.0

private let task = session.dataTask(from: url)
