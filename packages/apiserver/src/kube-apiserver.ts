import { runMain } from "@coxswain/apimachinery/flags/run-main";
import { notifySystemd } from "@coxswain/apimachinery/serving/systemd-notify";
import { configFromFlags } from "./config.ts";
import { kubeApiserver } from "./flags.ts";
import { tendHeap } from "./server/heap.ts";
import { startApiserver } from "./server.ts";

await runMain(kubeApiserver, async (flags, { log, signal, featureGates }) => {
  const server = await startApiserver(configFromFlags(flags), { log, featureGates });
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  tendHeap(server);
  void server.started.then(
    () => notifySystemd(log),
    () => {},
  );
  // A server that cannot start (a plugin's configuration is wrong, say) must not stay and answer 503.
  await Promise.race([stopped, server.started.then(() => stopped)]);
  await server.stop();
});
