import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { readyPods } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

const manifest = (namespace: string, replicas: number, color: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ${namespace}, labels: {part: config}}
data: {color: ${color}, "on": "yes"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: ${namespace}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: "busybox:1.35", command: [sleep, "3600"]}
`;

test("apply creates, changes and leaves alone what did not change", async (t) => {
  const namespace = await newNamespace(t, "apply");
  assert.match(
    await kubectl("apply", "-f", "-", { input: manifest(namespace, 1, "red") }),
    /settings created[\s\S]*worker created/,
  );
  assert.match(
    await kubectl("apply", "-f", "-", { input: manifest(namespace, 1, "red") }),
    /settings unchanged[\s\S]*worker unchanged/,
  );
  assert.match(
    await kubectl("apply", "-f", "-", { input: manifest(namespace, 2, "blue") }),
    /settings configured[\s\S]*worker configured/,
  );
  assert.equal(
    await kubectl("get", "configmap", "settings", "-n", namespace, "-o", "jsonpath={.data.color}{.data.on}"),
    "blueyes",
  );
  await readyPods(namespace, "app=worker", 2);
  assert.match(
    await kubectl("wait", "deployment/worker", "-n", namespace, "--for=condition=Available", "--timeout=180s"),
    /condition met/,
  );
  assert.match(
    await kubectl("delete", "-f", "-", { input: manifest(namespace, 2, "blue") }),
    /"settings" deleted[\s\S]*"worker" deleted/,
  );
});

test("replace, patch of each kind, label, annotate and a stale replace", async (t) => {
  const namespace = await newNamespace(t, "replace");
  await kubectl("create", "configmap", "one", "-n", namespace, "--from-literal=a=1");
  const stale = await getJson<{ data: Record<string, string> }>("configmap", "one", "-n", namespace);
  await kubectl("replace", "-f", "-", { input: JSON.stringify({ ...stale, data: { a: "2" } }) });
  const conflict = await tryKubectl(["replace", "-f", "-"], { input: JSON.stringify({ ...stale, data: { a: "3" } }) });
  assert.equal(conflict.code, 1);
  assert.match(conflict.stderr, /the object has been modified; please apply your changes to the latest version and try again/);
  await kubectl("patch", "configmap", "one", "-n", namespace, "--type=merge", "-p", '{"data":{"b":"x"}}');
  await kubectl("patch", "configmap", "one", "-n", namespace, "--type=json", "-p", '[{"op":"add","path":"/data/c","value":"y"}]');
  await kubectl("label", "configmap", "one", "-n", namespace, "tier=back");
  await kubectl("annotate", "configmap", "one", "-n", namespace, "note=kept");
  assert.equal(
    await kubectl("get", "configmap", "-l", "tier=back", "-n", namespace, "-o", "jsonpath={.items[0].data}"),
    '{"a":"2","b":"x","c":"y"}',
  );
});

test("explain, api-resources, api-versions, cluster-info, version and auth can-i answer", async () => {
  const explained = await kubectl("explain", "pods.spec.containers.image");
  assert.match(explained, /KIND: +Pod\nVERSION: +v1\n/);
  assert.match(explained, /FIELD: +image <string>/);
  assert.match(await kubectl("explain", "deployments.spec.strategy", "--recursive"), /rollingUpdate\s+<Object>/);
  assert.match(await kubectl("api-resources"), /^deployments +deploy +apps\/v1 +true +Deployment$/m);
  assert.match(await kubectl("api-versions"), /^apps\/v1$/m);
  assert.match(await kubectl("version", "--short"), /Server Version: v1\.23\.0/);
  assert.match(await kubectl("cluster-info"), /control plane/);
  assert.equal(await kubectl("auth", "can-i", "create", "pods"), "yes\n");
  const denied = await tryKubectl(["auth", "can-i", "delete", "nodes", "--as=system:serviceaccount:default:default"]);
  assert.equal(denied.stdout, "no\n");
  assert.match(await kubectl("auth", "can-i", "--list"), /\*\.\*/);
  assert.match(
    await kubectl("get", "nodes", "-o", "wide"),
    new RegExp(`${settings.nodeName} +Ready +control-plane,master +\\S+ +v1\\.23\\.0 +${settings.nodeAddress}`),
  );
});

test("drain moves the pods away and uncordon lets them come back", async (t) => {
  const namespace = await newNamespace(t, "drain");
  t.after(() => kubectl("uncordon", settings.nodeName));
  await kubectl("apply", "-f", "-", { input: manifest(namespace, 2, "red") });
  await readyPods(namespace, "app=worker", 2);
  await kubectl(
    "drain",
    settings.nodeName,
    "--ignore-daemonsets",
    "--delete-emptydir-data",
    "--force",
    "--timeout=180s",
    `--pod-selector=app=worker`,
  );
  assert.match(await kubectl("get", "node", settings.nodeName), /Ready,SchedulingDisabled/);
  const waiting = await waitFor("two pods that wait for a node", async () => {
    const listed = await getJson<{ items: { status: { phase: string; conditions?: { message?: string }[] } }[] }>(
      "pods",
      "-n",
      namespace,
    );
    return (
      listed.items.length === 2 &&
      listed.items.every((pod) => pod.status.conditions?.some((condition) => condition.message?.includes("unschedulable"))) &&
      listed.items
    );
  });
  assert.ok(waiting.every((pod) => pod.status.phase === "Pending"));
  await waitFor("the scheduler's events", async () =>
    /FailedScheduling +\S+ +0\/1 nodes are available: 1 node\(s\) were unschedulable/.test(
      await kubectl("get", "events", "-n", namespace),
    ),
  );
  await kubectl("uncordon", settings.nodeName);
  await readyPods(namespace, "app=worker", 2);
});

test("a deleted namespace takes everything in it", async () => {
  const namespace = `e2e-gone-${process.pid.toString(36)}`;
  await kubectl("create", "namespace", namespace);
  await kubectl("apply", "-f", "-", { input: manifest(namespace, 1, "red") });
  await readyPods(namespace, "app=worker", 1);
  await kubectl("delete", "namespace", namespace, "--timeout=180s");
  assert.match(
    (await tryKubectl(["get", "namespace", namespace])).stderr,
    new RegExp(`Error from server \\(NotFound\\): namespaces "${namespace}" not found`),
  );
});
