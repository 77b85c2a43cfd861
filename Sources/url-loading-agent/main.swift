// SPDX-License-Identifier: Apache-2.0

// In this folder: the agent's executable

import Glibc
import URLLoadingAgent

exit(await BackgroundAgent.run(Array(CommandLine.arguments.dropFirst())))
