import Glibc
import URLLoadingAgent

exit(await BackgroundAgent.run(Array(CommandLine.arguments.dropFirst())))
