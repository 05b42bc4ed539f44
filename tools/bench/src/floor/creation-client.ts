import { setTimeout as sleep } from "node:timers/promises";
import { benchPod } from "../daemons/cluster-objects.ts";
import { BareSession, cpuSince } from "./session.ts";

/**
 * `node creation-client.ts <kubeconfig> <namespace>`: creates 1,000 Pods and receives the events of a watch of all Pods, without
 * decoding anything. Prints the CPU time of each round.
 */
const [kubeconfig = "", namespace = ""] = process.argv.slice(2);
const session = new BareSession(kubeconfig);
const collection = `/api/v1/namespaces/${namespace}/pods`;
const count = 1_000;
/** As many creations as a ReplicaSet's controller has under way. */
const atOnce = 500;
const rounds = 3;
/** Until all Pods are ready, or deleted. */
const settleMs = 3_000;

session.watch(`${collection}?watch=1`);
for (let round = 1; round <= rounds; round++) {
  const bodies = Array.from({ length: count }, (_, index) => JSON.stringify(benchPod({ name: `floor-${index}` })));
  session.received = 0;
  const before = process.cpuUsage();
  for (let at = 0; at < count; at += atOnce)
    await Promise.all(bodies.slice(at, at + atOnce).map((body) => session.request("POST", collection, body)));
  await sleep(settleMs);
  console.log(`${count} creations, round ${round}: CPU ${cpuSince(before)} s, ${session.received} bytes of events`);
  await session.request("DELETE", collection, JSON.stringify({ gracePeriodSeconds: 0 }));
  await sleep(settleMs);
}
session.close();
