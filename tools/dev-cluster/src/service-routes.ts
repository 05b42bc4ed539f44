import { newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { newLogger } from "@coxswain/apimachinery/logging/logger";
import type { Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/schema/kinds/discovery/v1";
import { endpointSlices, services } from "@coxswain/apimachinery/schema/kinds/resources";
import { applyRoutes, routesOf } from "./service-chains.ts";

/**
 * `service-routes.ts <kubeconfig> <cluster id> <pod range>`: synchronizes iptables rules with Services and EndpointSlices. A
 * minimal replacement for kube-proxy on a single node; without session affinity and IPv6.
 */
const [kubeconfig = "", clusterId = "", podCidr = ""] = process.argv.slice(2);
const stopping = new AbortController();
for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => stopping.abort());

const log = newLogger({ format: "text", verbosity: 2 });
const client = newClient(await loadKubeconfig(kubeconfig));
const factory = newInformerFactory(client, { log, clock: realClock });
const serviceInformer = factory.for<Service>(services);
const sliceInformer = factory.for<EndpointSlice>(endpointSlices);

let changed = Promise.withResolvers<void>();
const wake = (): void => changed.resolve();
for (const informer of [serviceInformer, sliceInformer]) informer.addHandler({ added: wake, updated: wake, deleted: wake });
factory.start(stopping.signal);
await factory.waitForSync(stopping.signal);

const quietMs = 50; // batches the writes of one change
let backoffMs = 0;
while (!stopping.signal.aborted) {
  changed = Promise.withResolvers();
  try {
    await applyRoutes(clusterId, podCidr, routesOf(serviceInformer.lister.list(), sliceInformer.lister.list()));
    backoffMs = 0;
  } catch (err) {
    backoffMs = Math.min(Math.max(backoffMs * 2, 500), 30_000);
    log.error("cannot write the rules of Services; trying again", err, { backoffMs });
    realClock.after(backoffMs, wake);
  }
  const ended = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve(), { once: true }));
  await Promise.race([changed.promise, ended]);
  await realClock.sleep(quietMs, stopping.signal).catch(() => {});
}
client.close();
