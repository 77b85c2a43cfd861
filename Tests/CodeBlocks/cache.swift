// SPDX-License-Identifier: Apache-2.0

private let cache = ResponseCache(memoryCapacity: 1)
