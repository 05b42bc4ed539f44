import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { benchAll } from "./all/bench-all.ts";
import { benchApi } from "./api.ts";
import { benchCodec } from "./codec.ts";
import { benchCluster } from "./daemons/cluster-idle.ts";
import { benchControllers } from "./daemons/controllers.ts";
import { benchNode } from "./daemons/node.ts";
import { benchScheduler } from "./daemons/scheduler.ts";
import { benchServices } from "./daemons/services.ts";
import { benchClientFloors } from "./floor/clients.ts";
import { benchWatchFloor } from "./floor/watch.ts";
import { parseReasonsOptions } from "./options.ts";
import { benchPortSharing } from "./port-sharing.ts";
import { benchReasons } from "./reasons/bench-reasons.ts";
import { benchScale } from "./scale/bench-scale.ts";
import { benchStart } from "./start.ts";
import { benchTesting } from "./testing/bench-testing.ts";
import { usageOf } from "./usage.ts";

const argv = process.argv.slice(2);
const [verb = "", ...args] = argv;
/** Length of the list measured by `codec`. */
const listedPods = 5_000;

try {
  const usage = args.includes("--help") || args.includes("-h") ? usageOf(verb) : undefined;
  // Only `all`, `codec`, `reasons`, `scale` and `testing` exit with 1 when a limit is exceeded; the ratios of `testing` hardly depend on the machine.
  if (usage !== undefined) process.stdout.write(usage);
  else if (verb === "codec" && args.length === 0) process.exitCode = benchCodec(listedPods) ? 0 : 1;
  else if (verb === "reasons") process.exitCode = (await benchReasons(parseReasonsOptions(argv))) ? 0 : 1;
  else if (verb === "testing") process.exitCode = (await benchTesting(args)) ? 0 : 1;
  else if (verb === "scale") process.exitCode = (await benchScale(args)) ? 0 : 1;
  else if (verb === "all") process.exitCode = (await benchAll(args)) ? 0 : 1;
  else if (verb === "start") await benchStart(argv);
  else if (verb === "controllers") await benchControllers(args);
  else if (verb === "cluster") await benchCluster(args);
  else if (verb === "node") await benchNode(args);
  else if (verb === "services") await benchServices(args);
  else if (verb === "scheduler") await benchScheduler(args);
  else if (verb === "ports" && args.length === 0) await benchPortSharing();
  else if (verb === "floor" && args.length === 0) {
    await benchWatchFloor();
    await benchClientFloors();
  } else await benchApi(argv);
} catch (err) {
  const [code, message] = [errorCode(err), messageOf(err)];
  const isUsage = code?.startsWith("ERR_PARSE_ARGS") === true || message.startsWith("usage: ");
  if (!isUsage) throw err;
  process.stderr.write(`bench: ${message}${message.startsWith("usage: ") ? "" : "; see ./cox bench --help"}\n`);
  process.exitCode = 2;
}
