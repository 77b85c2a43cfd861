// SPDX-License-Identifier: Apache-2.0

import Glibc

exit(await Command.run(Array(CommandLine.arguments.dropFirst())))
