import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { getJson, kubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { readyPods } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Metrics as metrics-server serves them, as custom resources: same paths, same fields. */
async function serveMetrics(t: TestContext): Promise<void> {
  const name = "pods.metrics.k8s.io";
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const definition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name, annotations: { "api-approved.kubernetes.io": "unapproved, in a test" } },
    spec: {
      group: "metrics.k8s.io",
      scope: "Namespaced",
      names: { plural: "pods", singular: "podmetrics", kind: "PodMetrics", listKind: "PodMetricsList" },
      versions: [{ name: "v1beta1", served: true, storage: true, schema }],
    },
  };
  t.after(() => tryKubectl(["delete", "crd", name, "--wait=false"]));
  await kubectl("create", "-f", "-", { input: JSON.stringify(definition) });
  await kubectl("wait", "--for=condition=Established", `crd/${name}`, "--timeout=180s");
}

interface Autoscaler {
  status?: { currentReplicas: number; desiredReplicas: number; currentCPUUtilizationPercentage?: number };
}

test("an autoscaler gives a deployment the replicas that its use of CPU asks for", async (t) => {
  await serveMetrics(t);
  const namespace = await newNamespace(t, "autoscaling");
  const run = (...args: string[]): Promise<string> => kubectl("-n", namespace, ...args);
  const untilTold = ["sh", "-c", "trap exit TERM; sleep 3600 & wait"];
  await run("create", "deployment", "web", "--image=busybox:1.35", "--", ...untilTold);
  await run("set", "resources", "deployment", "web", "--requests=cpu=10m");
  await run("rollout", "status", "deployment/web", "--timeout=180s");
  const [pod] = await readyPods(namespace, "app=web", 1);
  const metrics = {
    apiVersion: "metrics.k8s.io/v1beta1",
    kind: "PodMetrics",
    metadata: { name: pod?.metadata.name, namespace, labels: pod?.metadata.labels },
    // The autoscaler ignores samples whose window began before the pod was ready.
    timestamp: new Date(Date.now() + 60_000).toISOString(),
    window: "10s",
    containers: [{ name: "busybox", usage: { cpu: "15m", memory: "1Mi" } }],
  };
  await kubectl("create", "-f", "-", { input: JSON.stringify(metrics) });
  await run("autoscale", "deployment", "web", "--min=1", "--max=5", "--cpu-percent=50");
  await readyPods(namespace, "app=web", 3);
  const { status } = await waitFor("the status", async () => {
    const autoscaler = await getJson<Autoscaler>("hpa.v1.autoscaling", "web", "-n", namespace);
    return autoscaler.status?.desiredReplicas === 3 && autoscaler;
  });
  assert.equal(status?.currentCPUUtilizationPercentage, 150);
  const events = await waitFor("the event", () =>
    run("get", "events", "--field-selector=reason=SuccessfulRescale", "-o", "jsonpath={.items[*].message}").then(
      (text) => text !== "" && text,
    ),
  );
  assert.equal(events, "New size: 3; reason: cpu resource utilization (percentage of request) above target");
});
