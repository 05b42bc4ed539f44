import assert from "node:assert/strict";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import type { Shortage } from "./admission-checks.ts";
import { newPreempt, podsToPreempt } from "./preempt.ts";

const critical = aNodePod({ priority: 2_000_000_000 }, { name: "critical", uid: "critical" });
const short = (resource: string, amount: number): Shortage => ({ resource, requested: amount, used: 1000, capacity: 1000 });
const asking = (name: string, requests: Record<string, string>, limits = {}, priority?: number): NodePod =>
  aNodePod(
    { containers: [aContainer({ resources: { requests, limits } })], ...(priority !== undefined && { priority }) },
    { name, uid: name },
  );
const bestEffort = (name: string): NodePod => asking(name, {});
const burstable = (name: string, cpu: string, memory = "1Mi"): NodePod => asking(name, { cpu, memory });
const guaranteed = (name: string, cpu: string): NodePod => asking(name, { cpu, memory: "1Mi" }, { cpu, memory: "1Mi" });

for (const { name, pods, missing, want } of [
  {
    name: "one that is enough, rather than two",
    pods: [burstable("small", "100m"), burstable("tiny", "50m"), burstable("enough", "200m")],
    missing: [short("cpu", 150)],
    want: ["enough"],
  },
  {
    name: "of pods that each suffice the one with the smaller request",
    pods: [burstable("large", "900m"), burstable("enough", "200m")],
    missing: [short("cpu", 150)],
    want: ["enough"],
  },
  {
    name: "several pods when none alone suffices",
    pods: [burstable("a", "100m"), burstable("b", "80m"), burstable("c", "10m")],
    missing: [short("cpu", 150)],
    want: ["a", "b"],
  },
  {
    name: "pods of a lower QoS class before those of a higher",
    pods: [guaranteed("better", "500m"), burstable("worse", "200m")],
    missing: [short("cpu", 150)],
    want: ["worse"],
  },
  {
    name: "pods of a higher QoS class for the rest that lower ones cannot free",
    pods: [guaranteed("better", "500m"), guaranteed("other", "100m"), burstable("worse", "100m")],
    missing: [short("cpu", 150)],
    want: ["worse", "other"],
  },
  {
    name: "any pod when the number of pods is the limit",
    pods: [burstable("asks", "1"), bestEffort("none")],
    missing: [short("pods", 1)],
    want: ["none"],
  },
  {
    name: "pods of the two lower classes together before one of the highest",
    pods: [guaranteed("best", "1"), burstable("burstable", "1"), bestEffort("least")],
    missing: [short("pods", 2)],
    want: ["burstable", "least"],
  },
  {
    name: "no pod that does not ask for the resource",
    pods: [asking("memory", { memory: "9Gi" }), burstable("cpu", "200m"), bestEffort("none")],
    missing: [short("cpu", 150)],
    want: ["cpu"],
  },
  {
    name: "pods that free enough of each resource",
    pods: [burstable("cpu", "1", "1"), burstable("memory", "1m", "1Gi")],
    missing: [short("cpu", 500), short("memory", 1024 ** 3)],
    want: ["cpu", "memory"],
  },
  {
    name: "pods that free half of each resource rather than one that frees all of the first and little of the second",
    pods: [burstable("half", "50m", "50Mi"), burstable("uneven", "100m", "10Mi"), burstable("other", "50m", "50Mi")],
    missing: [short("cpu", 100), short("memory", 100 * 1024 ** 2)],
    want: ["half", "other"],
  },
]) {
  test(`preempts ${name}`, () => {
    const names = podsToPreempt(critical, pods, missing).map(({ metadata }) => metadata.name);
    assert.deepEqual(names.toSorted(), want.toSorted());
  });
}

test("preempts no critical pod, unless it has a lower priority", () => {
  const other = asking("other", { cpu: "1" }, {}, 2_000_000_000);
  assert.throws(() => podsToPreempt(critical, [other], [short("cpu", 100), short("memory", 5)]), {
    message: "no set of running pods found to reclaim resources: [(res: cpu, q: 100), (res: memory, q: 5), ]",
  });
  assert.throws(() => podsToPreempt(critical, [asking("memory", { memory: "9Gi" })], [short("cpu", 100)]), {
    message: "no set of running pods found to reclaim resources: [(res: cpu, q: 100), ]",
  });
  const more = aNodePod({ priority: 2_000_001_000 });
  assert.deepEqual(podsToPreempt(more, [other], [short("cpu", 100)]), [other]);
});

function preempting(fails = false) {
  const did: string[] = [];
  const preempt = newPreempt({
    endPod: async ({ metadata }, { reason, message }, graceSeconds) => {
      did.push(`${metadata.name} ${reason} ${message} ${graceSeconds}`);
      if (fails) throw new Error("timeout waiting to kill pod");
    },
    onPreempted: (resource) => void did.push(`counted ${resource}`),
    log: discardLogger,
  });
  return { preempt, did };
}

test("preempted pods get an event and their own grace period; a kill beyond it is not awaited", async () => {
  for (const fails of [false, true]) {
    const { preempt, did } = preempting(fails);
    assert.equal(await preempt(critical, [burstable("a", "1")], [short("cpu", 1)]), undefined);
    const reported = "a Preempting Preempted in order to admit critical pod undefined";
    assert.deepEqual(did, fails ? [reported] : [reported, "counted cpu"]);
  }
});

test("a preempted pod is counted for the first of the missing resources", async () => {
  const { preempt, did } = preempting();
  await preempt(critical, [burstable("a", "1", "1Gi")], [short("memory", 1), short("cpu", 1)]);
  assert.equal(did.at(-1), "counted memory");
});

test("a critical pod for which no preemption helps gets an Event", async () => {
  const { preempt } = preempting();
  assert.deepEqual(await preempt(critical, [], [short("cpu", 7)]), {
    reason: "UnexpectedAdmissionError",
    message:
      "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: " +
      "no set of running pods found to reclaim resources: [(res: cpu, q: 7), ]",
  });
});
