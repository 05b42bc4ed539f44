import assert from "node:assert/strict";
import { test } from "node:test";
import { getJson, kubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { podsOf, readyPods } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

/** Exits at once on SIGTERM. */
const command = ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"];
const template = (app: string) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: "main", image: "busybox:1.35", command }] },
});

/** kubectl rollout commands for a set of pods and their effect; the same for both kinds. */
async function rollForthAndBack(set: string, namespace: string, pods: number): Promise<void> {
  const run = (...args: string[]): Promise<string> => kubectl("-n", namespace, ...args);
  const complete = async (image: string): Promise<void> => {
    assert.match(await run("rollout", "status", set, "--timeout=180s"), /successfully rolled out|roll out complete/);
    const ready = await readyPods(namespace, "app=set", pods);
    assert.deepEqual([...new Set(ready.map(({ spec }) => spec.containers[0]?.image))], [image]);
  };
  await complete("busybox:1.35");
  const [before] = await podsOf(namespace, "app=set");
  await run("set", "image", set, "main=busybox:1.36");
  await run("annotate", set, "kubernetes.io/change-cause=a newer busybox");
  await complete("busybox:1.36");
  const history = await run("rollout", "history", set);
  assert.match(history, /^1 /m);
  assert.match(history, /^2 /m);
  assert.match(await run("rollout", "history", set, "--revision=1"), /Image:\s+busybox:1\.35/);
  await run("rollout", "undo", set);
  await complete("busybox:1.35");
  assert.match(await run("rollout", "history", set), /^2 .*\n^3 /m);
  const [again] = await podsOf(namespace, "app=set");
  assert.equal(
    again?.metadata.labels["controller-revision-hash"],
    before?.metadata.labels["controller-revision-hash"],
    "it is the same revision as before",
  );
  const uids = new Set((await podsOf(namespace, "app=set")).map(({ metadata }) => metadata.uid));
  await run("rollout", "restart", set);
  await complete("busybox:1.35");
  for (const { metadata } of await podsOf(namespace, "app=set")) assert.ok(!uids.has(metadata.uid), "every pod is a new one");
}

test("a daemon set runs a pod on each node; rollout status, history, undo and restart move it", async (t) => {
  const namespace = await newNamespace(t, "daemons");
  const metadata = { name: "set", namespace };
  const spec = { selector: { matchLabels: { app: "set" } }, template: template("set") };
  const daemonSet = { apiVersion: "apps/v1", kind: "DaemonSet", metadata, spec };
  await kubectl("create", "-f", "-", { input: JSON.stringify(daemonSet) });
  const nodes = (await getJson<{ items: object[] }>("nodes")).items.length;
  await rollForthAndBack("daemonset/set", namespace, nodes);
  const columns = new RegExp(`^set +${`${nodes} +`.repeat(5)}<none>`, "m");
  await waitFor("all columns", async () => columns.test(await kubectl("-n", namespace, "get", "daemonset", "set")));
  await kubectl(
    "-n",
    namespace,
    "patch",
    "daemonset",
    "set",
    "-p",
    '{"spec":{"template":{"spec":{"nodeSelector":{"no":"node"}}}}}',
  );
  await waitFor("no pod is left where none belongs", async () => (await podsOf(namespace, "app=set")).length === 0);
});

test("a stateful set keeps names and order; rollout status, history, undo and restart move its pods", async (t) => {
  const namespace = await newNamespace(t, "stateful");
  const run = (...args: string[]): Promise<string> => kubectl("-n", namespace, ...args);
  const metadata = { name: "set", namespace };
  const spec = { replicas: 2, serviceName: "set", selector: { matchLabels: { app: "set" } }, template: template("set") };
  const statefulSet = { apiVersion: "apps/v1", kind: "StatefulSet", metadata, spec };
  await kubectl("create", "-f", "-", { input: JSON.stringify(statefulSet) });
  await rollForthAndBack("statefulset/set", namespace, 2);
  assert.equal(await run("exec", "set-1", "--", "hostname"), "set-1\n");
  assert.match(await run("get", "statefulset", "set"), /^set +2\/2 /m);
  await run("scale", "statefulset", "set", "--replicas=3");
  const names = async (): Promise<string[]> =>
    (await podsOf(namespace, "app=set")).map(({ metadata: { name } }) => name).toSorted();
  await readyPods(namespace, "app=set", 3);
  assert.deepEqual(await names(), ["set-0", "set-1", "set-2"]);
  await run("delete", "pod", "set-0");
  await readyPods(namespace, "app=set", 3);
  assert.deepEqual(await names(), ["set-0", "set-1", "set-2"]);
  await run("scale", "statefulset", "set", "--replicas=1");
  await waitFor("only the first is left", async () => (await names()).join() === "set-0");
  await waitFor("its event", async () =>
    /SuccessfulDelete +\S+ .*statefulset-controller +delete Pod set-2 in StatefulSet set successful/.test(
      await run("describe", "statefulset", "set"),
    ),
  );
});

test("a stateful set creates each pod's claims, and keeps them when it is deleted", async (t) => {
  const namespace = await newNamespace(t, "claims");
  const volumeClaimTemplates = [
    { metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } } } },
  ];
  const statefulSet = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "set", namespace },
    spec: {
      replicas: 2,
      serviceName: "set",
      podManagementPolicy: "Parallel",
      selector: { matchLabels: { app: "set" } },
      template: template("set"),
      volumeClaimTemplates,
    },
  };
  await kubectl("create", "-f", "-", { input: JSON.stringify(statefulSet) });
  const claims = (): Promise<string> => kubectl("-n", namespace, "get", "pvc", "-l", "app=set", "-o", "name");
  const both = "persistentvolumeclaim/data-set-0\npersistentvolumeclaim/data-set-1\n";
  await waitFor("both claims", async () => (await claims()) === both);
  await waitFor("both pods", async () => (await podsOf(namespace, "app=set")).length === 2);
  const [pod] = await podsOf(namespace, "app=set");
  assert.ok(pod?.spec.volumes?.some(({ name }) => name === "data"));
  await kubectl("-n", namespace, "delete", "statefulset", "set");
  await waitFor("the pods are gone", async () => (await podsOf(namespace, "app=set")).length === 0);
  assert.equal(await claims(), both);
});
