// SPDX-License-Identifier: Apache-2.0

// The names that code blocks about the classic API presume. Only type-checked, by script/code-blocks.

import Foundation
import URLLoadingCompatibility

let url = URL(filePath: "/")
let request = URLRequest(url: url)
let session = URLSession.shared
let folder = url
