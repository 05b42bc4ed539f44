import { setTimeout as sleep } from "node:timers/promises";
import { benchPod, nodeName } from "../daemons/cluster-objects.ts";
import { BareSession, cpuSince } from "./session.ts";

/**
 * `node preemption-client.ts <kubeconfig> <namespace>`: sends what a scheduler sends for 200 Pods of which each preempts another one, six
 * requests for each, and receives the events of a watch of all Pods, without decoding or deciding anything. The deletion of a victim is
 * awaited before the next Pod, as a scheduler awaits it. Prints the CPU time of each round.
 */
const [kubeconfig = "", namespace = ""] = process.argv.slice(2);
const session = new BareSession(kubeconfig);
const core = `/api/v1/namespaces/${namespace}`;
const pods = `${core}/pods`;
const events = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
const strategicPatch = "application/strategic-merge-patch+json";
const count = 200;
const nodeCount = 50;
const rounds = 4;
/** The back-off of a refused Pod. */
const backoffMs = 1_000;
const settleMs = 2_000;

const makePod = (name: string, nodeOf?: string): Promise<void> =>
  session.request(
    "POST",
    pods,
    JSON.stringify(benchPod({ name, cpu: "1", ...(nodeOf !== undefined && { spec: { nodeName: nodeOf } }) })),
  );

function writeEvent(pod: string, reason: string, round: number): Promise<void> {
  const body = {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: `${pod}.${reason.toLowerCase()}.${round}`, namespace },
    eventTime: new Date().toISOString().replace("Z", "000Z"),
    ...{ type: "Normal", reason, action: "Scheduling", note: "0/50 nodes are available: 50 Insufficient cpu." },
    ...{ reportingController: "floor", reportingInstance: "floor" },
    regarding: { apiVersion: "v1", kind: "Pod", namespace, name: pod },
  };
  return session.request("POST", events, JSON.stringify(body));
}

function refuse(pod: string, node: string): Promise<void> {
  const message = "0/50 nodes are available: 50 Insufficient cpu.";
  const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
  const body = JSON.stringify({ status: { conditions, nominatedNodeName: node } });
  return session.request("PATCH", `${pods}/${pod}/status`, body, strategicPatch);
}

function bind(name: string, node: string): Promise<void> {
  const body = { apiVersion: "v1", kind: "Binding", metadata: { name }, target: { apiVersion: "v1", kind: "Node", name: node } };
  return session.request("POST", `${pods}/${name}/binding`, JSON.stringify(body));
}

session.watch(`${pods}?watch=1`);
for (let round = 1; round <= rounds; round++) {
  const indexes = Array.from({ length: count }, (_, index) => index);
  const nodeOf = (index: number): string => nodeName(index % nodeCount);
  for (const index of indexes) await makePod(`victim-${index}`, nodeOf(index));
  for (const index of indexes) await makePod(`urgent-${index}`);
  session.received = 0;
  const before = process.cpuUsage();
  const begin = performance.now();
  const unanswered: Promise<void>[] = [];
  for (const index of indexes) {
    await session.request("DELETE", `${pods}/victim-${index}`, "{}");
    unanswered.push(refuse(`urgent-${index}`, nodeOf(index)));
    for (const [pod, reason] of [
      ["victim", "Preempted"],
      ["urgent", "FailedScheduling"],
    ] as const)
      unanswered.push(writeEvent(`${pod}-${index}`, reason, round));
  }
  await Promise.all(unanswered);
  await sleep(backoffMs);
  await Promise.all(
    indexes.flatMap((index) => [bind(`urgent-${index}`, nodeOf(index)), writeEvent(`urgent-${index}`, "Scheduled", round)]),
  );
  const seconds = ((performance.now() - begin) / 1000).toFixed(2);
  console.log(
    `${count} preemptions, round ${round}: CPU ${cpuSince(before)} s, ${seconds} s, ${session.received} bytes of events`,
  );
  await session.request("DELETE", pods, JSON.stringify({ gracePeriodSeconds: 0 }));
  await sleep(settleMs);
}
session.close();
