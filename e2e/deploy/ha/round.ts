import { setTimeout as delay } from "node:timers/promises";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type MachineCluster, minutes } from "../cluster.ts";
import type { RoundResult } from "./clients.ts";
import type { ClusterClients } from "./cluster-clients.ts";
import { controlPlane, type Kind, type Target } from "./faults.ts";

/** How long a fault lasts at least; longer until a pod was evicted and its successor is ready. */
const faultMs = 15_000;

/** A fault while clients write, read and watch, until all is whole again. */
export async function runRound(
  cluster: MachineCluster,
  clients: ClusterClients,
  target: Target,
  kind: Kind,
): Promise<RoundResult> {
  await clients.begin();
  const found = await target.find(cluster);
  const places = kind.ofMachine ? [...new Map(found.map((place) => [place.machine, place])).values()] : found;
  const all = (act: Kind["begin"] | undefined): Promise<unknown> => Promise.all(places.map((place) => act?.(cluster, place)));
  await clients.fault();
  try {
    await all(kind.begin);
    const takesHold = places.map((place) =>
      waitFor(async () => kind.holds?.(cluster, place) ?? true, {
        ...{ intervalMs: 500, retry: hasExitCode, what: `an effect of ${kind.name} on ${place.machine}` },
      }),
    );
    await Promise.all([...takesHold, clients.move(!(target.isNode && kind.losesNode)), delay(faultMs)]);
  } finally {
    await all(kind.end);
  }
  await whole(cluster);
  return clients.end();
}

/** Resolves when every member of etcd, API server and node is well. */
async function whole(cluster: MachineCluster): Promise<void> {
  const options = { timeoutMs: minutes(3), intervalMs: 500, retry: hasExitCode };
  for (const name of controlPlane) {
    await waitFor(async () => (await cluster.kubectl(name, "get", "--raw", "/readyz")) === "ok", {
      ...options,
      what: `API server of ${name}`,
    });
    const member =
      "ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=ca.crt --cert=healthcheck-client.crt --key=healthcheck-client.key";
    await waitFor(
      async () =>
        (await cluster.machine(name).shell(`cd /etc/kubernetes/pki/etcd; ${member} endpoint health 2>&1`)).includes("is healthy"),
      {
        ...options,
        what: `etcd of ${name}`,
      },
    );
  }
  await cluster.whenReady("cp1", ...controlPlane, "n1", "n2");
}
