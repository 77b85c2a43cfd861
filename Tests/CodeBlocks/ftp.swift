// SPDX-License-Identifier: Apache-2.0

private let content = Data()
