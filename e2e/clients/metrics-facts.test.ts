/**
 * The metrics of the daemons against the table of this release's metrics, facts/metrics.tsv: names, types, labels, stability and
 * buckets. A row's state is `served`, `sometimes` with a condition in its note, or `absent` with the reason. The test makes series
 * of all metrics appear except of those whose row names the test that does so. Metrics that upstream does not have are not in the table.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Agent, get } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

interface Fact {
  daemon: string;
  page: string;
  name: string;
  type: string;
  labels: string;
  stability: string;
  buckets: string;
  state: string;
  note: string;
  /** Test that makes series appear, where this one does not. */
  series: string;
}

interface Family {
  type: string;
  stability: string;
  /** Sorted label names of its first series, without `le`; undefined without series. */
  labels: string | undefined;
  /** Upper bounds of the first histogram, without +Inf. */
  buckets: string | undefined;
}

const columns = ["daemon", "page", "name", "type", "labels", "stability", "buckets", "state", "note", "series"] as const;
const facts = readFileSync(join(import.meta.dirname, "..", "facts", "metrics.tsv"), "utf8")
  .trimEnd()
  .split("\n")
  .slice(1)
  .map((line) => {
    const cells = line.split("\t");
    return Object.fromEntries(columns.map((column, at) => [column, cells[at] ?? ""])) as unknown as Fact;
  });

const noSeries = "has no series";
const states = ["served", "sometimes", "absent"];

function familiesOf(page: string): Map<string, Family> {
  const families = new Map<string, Family>();
  const bounds = new Map<string, string[]>();
  for (const line of page.split("\n")) {
    const help = /^# HELP (\S+) (?:\[(\w+)\])?/.exec(line);
    if (help !== null) {
      families.set(help[1] as string, { type: "", stability: help[2] ?? "", labels: undefined, buckets: undefined });
      continue;
    }
    const type = /^# TYPE (\S+) (\w+)/.exec(line);
    if (type !== null) {
      const family = families.get(type[1] as string);
      if (family !== undefined) family.type = type[2] as string;
      continue;
    }
    const series = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? /.exec(line);
    if (series === null) continue;
    const [, full = "", inner = ""] = series;
    const name = families.has(full) ? full : full.replace(/_(bucket|sum|count)$/, "");
    const family = families.get(name);
    if (family === undefined) continue;
    const names = [...inner.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label = ""]) => label);
    family.labels ??= names
      .filter((label) => label !== "le")
      .sort()
      .join();
    const bound = /le="([^"]+)"/.exec(inner)?.[1];
    if (!full.endsWith("_bucket") || bound === undefined || family.buckets !== undefined) continue;
    const own = bounds.getOrInsertComputed(name, () => []);
    if (bound === "+Inf") family.buckets = own.join(" ");
    else own.push(bound);
  }
  return families;
}

/** What is wrong with a page, in one line for each family. */
function problemsOf(rows: readonly Fact[], families: ReadonlyMap<string, Family>): string[] {
  const problems: string[] = [];
  for (const { name, type, labels, stability, buckets, state, series } of rows) {
    const family = families.get(name);
    if (family === undefined) {
      if (state === "served") problems.push(`${name} is missing`);
      continue;
    }
    if (family.labels === undefined && state === "served" && series === "") problems.push(`${name} ${noSeries}`);
    if (state === "absent") problems.push(`${name} is served, and the table says why it is not`);
    if (family.type !== type) problems.push(`${name} is a ${family.type}, not a ${type}`);
    if (family.stability !== stability) problems.push(`${name} is ${family.stability}, not ${stability}`);
    if (family.labels !== undefined && family.labels !== labels)
      problems.push(`${name} has the labels ${family.labels}, not ${labels}`);
    if (buckets !== "" && family.buckets !== undefined && family.buckets !== buckets)
      problems.push(`${name} has the buckets ${family.buckets}, not ${buckets}`);
  }
  return problems;
}

const rights = (name: string): string => `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: ${name}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ${name}}
rules:
- {apiGroups: [""], resources: [nodes/metrics], verbs: [get]}
- {nonResourceURLs: [/metrics, /metrics/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ${name}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${name}}
subjects: [{kind: ServiceAccount, name: reader, namespace: ${name}}]
`;

/** What has to happen in the cluster for series to appear. */
const causes = `
apiVersion: v1
kind: Pod
metadata: {name: limited, labels: {app: limited}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox:1.35
    command: [sh, -c, "trap exit TERM; sleep 1000 & wait"]
    readinessProbe: {exec: {command: ["true"]}}
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {cpu: 500m, memory: 64Mi}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: short}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox:1.35, command: ["true"]}]
---
apiVersion: v1
kind: Service
metadata: {name: by-hand}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: selecting}
spec: {selector: {app: limited}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: by-hand}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: waiting}
spec: {storageClassName: "", selector: {matchLabels: {none: here}}, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`;

test("every row of the table has a state and, where it is not served as in the release, a note", () => {
  const wrong = facts.filter(
    ({ state, note }) => !states.includes(state) || (note === "" && (state === "absent" || state === "sometimes")),
  );
  assert.deepEqual(wrong, []);
  const keys = facts.map(({ daemon, page, name }) => `${daemon} ${page} ${name}`);
  assert.deepEqual(
    keys.filter((key, at) => keys.indexOf(key) !== at),
    [],
  );
});

test("the metrics of all daemons are those of the table: names, types, stability, labels and buckets", async (t) => {
  const namespace = await newNamespace(t, "metrics-facts");
  t.after(() => tryKubectl(["delete", "clusterrole,clusterrolebinding", namespace]));
  await kubectl("apply", "-f", "-", { input: rights(namespace) });
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/reader/token`;
  const request = JSON.stringify({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} });
  const { status } = JSON.parse(await kubectl("create", "--raw", path, "-f", "-", { input: request })) as {
    status: { token: string };
  };
  const agent = new Agent({ rejectUnauthorized: false });
  t.after(() => agent.destroy());
  const read = (port: number, page: string): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = { authorization: `Bearer ${status.token}` };
    get({ host: "127.0.0.1", port, path: page, agent, headers }, (response) => {
      if (response.statusCode === 200) resolve(text(response));
      else reject(new Error(`${page} of ${port}: ${response.statusCode}`));
    }).on("error", reject);
    return promise;
  };
  const { apiserver, controllerManager, scheduler, kubelet } = settings.ports;
  const ports: Readonly<Record<string, number>> = {
    "kube-apiserver": apiserver,
    "kube-controller-manager": controllerManager,
    "kube-scheduler": scheduler,
    kubelet,
  };
  await kubectl("apply", "-n", namespace, "-f", "-", { input: causes });
  await kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/limited", "--timeout=120s");
  await kubectl("wait", "-n", namespace, "--for=condition=Complete", "job/short", "--timeout=120s");
  const problems = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const [key, rows] of Map.groupBy(facts, ({ daemon, page }) => `${daemon} ${page}`)) {
      const [daemon = "", page = ""] = key.split(" ");
      const families = familiesOf(await read(ports[daemon] as number, page));
      assert.ok(families.size > 0, key);
      found.push(...problemsOf(rows, families).map((problem) => `${key}: ${problem}`));
    }
    return found;
  };
  // Some series follow their cause after the next look at the machine, or belong to reading the pages itself.
  let left: string[] = [];
  await waitFor("series of all metrics", async () => {
    left = await problems();
    return !left.some((problem) => problem.endsWith(noSeries));
  }).catch((err: unknown) => assert.deepEqual(left, [], String(err)));
  assert.deepEqual(left, []);
});
