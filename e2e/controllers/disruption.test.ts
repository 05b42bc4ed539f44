import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { readyPods } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

interface Budget {
  status?: { disruptionsAllowed: number; currentHealthy: number; desiredHealthy: number; expectedPods: number };
}

test("kubectl drain takes what the budget allows, and no more until the pods are back", async (t) => {
  const namespace = await newNamespace(t, "disruption");
  t.after(() => tryKubectl(["uncordon", settings.nodeName]));
  const untilTerminated = ["sh", "-c", "trap exit TERM; sleep 3600 & wait"];
  await kubectl("-n", namespace, "create", "deployment", "web", "--image=busybox:1.35", "--replicas=3", "--", ...untilTerminated);
  await kubectl("-n", namespace, "create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=60%");
  const status = (allowed: number, healthy: number) =>
    waitFor(`${allowed} disruptions to be allowed`, async () => {
      const budget = await getJson<Budget>("pdb", "web", "-n", namespace);
      return budget.status?.disruptionsAllowed === allowed && budget.status.currentHealthy === healthy && budget.status;
    });
  await readyPods(namespace, "app=web", 3);
  assert.partialDeepStrictEqual(await status(1, 3), { desiredHealthy: 2, expectedPods: 3 });

  // Long enough for one pod to terminate on any machine, even if its shell has not set the trap yet; the eviction of the next one
  // is refused until the timeout.
  const drain = ["drain", settings.nodeName, "--pod-selector=app=web", "--grace-period=1", "--timeout=20s"];
  const stopped = await tryKubectl(drain);
  assert.notEqual(stopped.code, 0);
  assert.equal(stopped.stdout.match(/^pod\/web-.* evicted$/gm)?.length, 1, stopped.stdout);
  assert.match(stopped.stderr, /Cannot evict pod as it would violate the pod's disruption budget\./);
  await status(0, 2);

  // Lets the replacement be scheduled.
  await kubectl("uncordon", settings.nodeName);
  await readyPods(namespace, "app=web", 3);
  await status(1, 3);
});
