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
  // A server that cannot start, for example because of an invalid plugin configuration, has to exit instead of answering 503 for ever.
  await Promise.race([stopped, server.started.then(() => stopped)]);
  await server.stop();
});
