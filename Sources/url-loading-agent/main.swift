// SPDX-License-Identifier: Apache-2.0

import Glibc
import URLLoadingAgent

exit(await BackgroundAgent.run(Array(CommandLine.arguments.dropFirst())))
