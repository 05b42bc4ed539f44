import { benchApi } from "./api.ts";
import { benchCodec } from "./codec.ts";
import { benchCluster } from "./daemons/cluster-idle.ts";
import { benchControllers } from "./daemons/controllers.ts";
import { benchNode } from "./daemons/node.ts";
import { benchScheduler } from "./daemons/scheduler.ts";
import { benchServices } from "./daemons/services.ts";
import { parseReasonsOptions } from "./options.ts";
import { benchPortSharing } from "./port-sharing.ts";
import { benchReasons } from "./reasons/bench-reasons.ts";
import { benchStart } from "./start.ts";
import { benchTesting } from "./testing/bench-testing.ts";
import { benchWatchFloor } from "./watch-floor.ts";

const argv = process.argv.slice(2);
/** Length of the list measured by `codec`. */
const listedPods = 5_000;

try {
  // Only `codec`, `reasons` and `testing` exit with 1 for exceeded limits: the ratios of the first two hardly depend on the machine.
  if (argv.length === 1 && argv[0] === "codec") process.exitCode = benchCodec(listedPods) ? 0 : 1;
  else if (argv[0] === "reasons") process.exitCode = (await benchReasons(parseReasonsOptions(argv))) ? 0 : 1;
  else if (argv[0] === "testing") process.exitCode = (await benchTesting(argv.slice(1))) ? 0 : 1;
  else if (argv[0] === "start") await benchStart(argv);
  else if (argv[0] === "controllers") await benchControllers(argv.slice(1));
  else if (argv[0] === "cluster") await benchCluster(argv.slice(1));
  else if (argv[0] === "node") await benchNode(argv.slice(1));
  else if (argv[0] === "services") await benchServices(argv.slice(1));
  else if (argv[0] === "scheduler") await benchScheduler(argv.slice(1));
  else if (argv.length === 1 && argv[0] === "ports") await benchPortSharing();
  else if (argv.length === 1 && argv[0] === "floor") await benchWatchFloor();
  else await benchApi(argv);
} catch (err) {
  const { code, message } = err as NodeJS.ErrnoException;
  const isUsage = code?.startsWith("ERR_PARSE_ARGS") === true || message.startsWith("usage: ");
  if (!isUsage) throw err;
  process.stderr.write(`bench: ${message}${message.startsWith("usage: ") ? "" : "; see ./cox bench --help"}\n`);
  process.exitCode = 2;
}
