// SPDX-License-Identifier: Apache-2.0

import URLLoadingCompatibility

private let source = file
private let receiver: (any URLSessionDelegate)? = nil
