import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, kubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { readyPods } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

interface Autoscaler {
  status?: { currentReplicas: number; desiredReplicas: number; currentCPUUtilizationPercentage?: number };
}

test("an autoscaler gives a deployment the replicas that its use of CPU asks for", async (t) => {
  const namespace = await newNamespace(t, "autoscaling");
  const run = (...args: string[]): Promise<string> => kubectl("-n", namespace, ...args);
  const busy = ["sh", "-c", "trap exit TERM; while :; do :; done"];
  await run("create", "deployment", "web", "--image=busybox:1.35", "--", ...busy);
  await run("set", "resources", "deployment", "web", "--requests=cpu=10m", "--limits=cpu=50m");
  await run("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50");
  await readyPods(namespace, "app=web", 3);
  const { status } = await waitFor("the status", async () => {
    const autoscaler = await getJson<Autoscaler>("hpa.v1.autoscaling", "web", "-n", namespace);
    return autoscaler.status?.desiredReplicas === 3 && autoscaler;
  });
  assert.ok((status?.currentCPUUtilizationPercentage ?? 0) > 100, JSON.stringify(status));
  const events = await waitFor("the event", () =>
    run("get", "events", "--field-selector=reason=SuccessfulRescale", "-o", "jsonpath={.items[*].message}").then(
      (text) => text !== "" && text,
    ),
  );
  assert.equal(events, "New size: 3; reason: cpu resource utilization (percentage of request) above target");
  assert.match(await run("top", "pods"), /^NAME +CPU\(cores\) .*\nweb-\S+ +\d+m /);
});
