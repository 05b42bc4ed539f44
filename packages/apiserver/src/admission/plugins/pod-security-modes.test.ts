/** Labels of a namespace and what becomes of its pods, workloads and the namespace itself; without a server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { podSecurity } from "./pod-security.ts";

const label = (mode: string): string => `pod-security.kubernetes.io/${mode}`;
const labelled = (modes: object): object =>
  Object.fromEntries(Object.entries(modes).map(([mode, value]) => [label(mode), value as string]));
const bad = { hostNetwork: true, containers: [] };
const violation = '"baseline:latest": host namespaces (hostNetwork=true)';

interface World {
  /** Modes of the namespace `web`; undefined: it cannot be looked up. */
  readonly modes?: object | undefined;
  readonly configuration?: object;
  readonly existing?: readonly object[];
  /** The API fails to answer for namespaces. */
  readonly isBroken?: boolean;
}

function aPlugin({ modes, configuration, existing = [], isBroken = false }: World) {
  const client = newFakeClient();
  client.put(pods, ...(existing as KubeObject[]));
  if (isBroken)
    client.react("get", "namespaces", () => {
      throw new Error("etcd is away");
    });
  const metrics = newMetricsRegistry();
  const namespace = modes && { metadata: { name: "web", labels: labelled(modes) } };
  const plugin = podSecurity({
    ...{ client, metrics, turns: new Turns(), clock: { monotonic: () => 0 } },
    ...{ featureEnabled: () => true, configurationOf: () => configuration },
    informers: { for: () => ({ synced: true, lister: { get: () => namespace } }) },
  } as unknown as PluginContext);
  return { plugin, metrics };
}

/** What a write leaves behind. */
async function outcomeOf(world: World, write: object) {
  const { plugin, metrics } = aPlugin(world);
  const [annotations, warnings] = [{} as Record<string, string>, [] as string[]];
  const attributes = {
    ...{
      operation: "CREATE",
      resource: { group: "", version: "v1", resource: "pods" },
      subresource: "",
      namespace: "web",
      name: "a",
    },
    ...{ user: { name: "ann", groups: [] }, oldObject: undefined },
    annotate: (key: string, value: string) => void Object.assign(annotations, { [key.replace(/.*\//, "")]: value }),
    warn: (text: string) => void warnings.push(text),
    ...write,
  } as unknown as AdmissionAttributes;
  const refusal = await Promise.resolve(plugin.validate?.(attributes)).then(
    () => "",
    (err: Error) => err.message,
  );
  return { refusal, annotations, warnings, metrics: await metrics.render() };
}

const aPod = (spec: object = bad) => ({ object: { metadata: { name: "a" }, spec } });
const invalidLevel =
  'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "x": must be one of privileged, baseline, restricted';

interface Wanted {
  readonly refusal: string | RegExp;
  readonly annotations?: object;
  readonly warnings?: readonly string[];
}
for (const { name, world, write = aPod(), want } of [
  {
    name: "a namespace that is audited alone",
    world: { modes: { audit: "baseline" } },
    want: {
      refusal: "",
      annotations: { "enforce-policy": "privileged:latest", "audit-violations": `would violate PodSecurity ${violation}` },
    },
  },
  {
    name: "a namespace that is warned alone",
    world: { modes: { warn: "baseline" } },
    want: { refusal: "", warnings: [`would violate PodSecurity ${violation}`] },
  },
  {
    name: "a level that is none, which counts as restricted",
    world: { modes: { enforce: "x" } },
    want: {
      refusal: /^pods "a" is forbidden: violates PodSecurity "restricted:latest": host namespaces/,
      annotations: { error: `Failed to parse policy: ${invalidLevel}`, "enforce-policy": "restricted:latest" },
    },
  },
  {
    name: "a level to audit that is none, which counts as privileged",
    world: { modes: { audit: "x", warn: "y" } },
    want: { refusal: "", warnings: [] },
  },
  {
    name: "a level and a version by default",
    world: { modes: {}, configuration: { defaults: { enforce: "restricted", "enforce-version": "v1.18" } } },
    write: aPod({ containers: [{ name: "c", securityContext: { allowPrivilegeEscalation: false, runAsNonRoot: true } }] }),
    want: { refusal: "", annotations: { "enforce-policy": "restricted:v1.18" } },
  },
  {
    name: "a version of its own for the level by default",
    world: {
      modes: { "enforce-version": "v1.7" },
      configuration: { defaults: { enforce: "baseline", "enforce-version": "v1.20" } },
    },
    write: aPod({ containers: [] }),
    want: { refusal: "", annotations: { "enforce-policy": "baseline:v1.7" } },
  },
  {
    name: "a version that is no version, which is the latest",
    world: { modes: { enforce: "baseline", "enforce-version": "2" } },
    write: aPod({ containers: [] }),
    want: { refusal: "", annotations: { "enforce-policy": "baseline:latest" } },
  },
] as { name: string; world: World; write?: object; want: Wanted }[]) {
  test(`PodSecurity and a pod: ${name}`, async () => {
    const outcome = await outcomeOf(world, write);
    const { refusal, ...rest } = want;
    if (refusal instanceof RegExp) assert.match(outcome.refusal, refusal);
    else assert.equal(outcome.refusal, refusal);
    assert.partialDeepStrictEqual(outcome, rest);
  });
}

test("a refused pod is noted for the audit, and its user is not warned besides", async () => {
  const modes = { enforce: "baseline", audit: "baseline", warn: "baseline" };
  const { refusal, annotations, warnings, metrics } = await outcomeOf({ modes }, aPod());
  assert.equal(refusal, `pods "a" is forbidden: violates PodSecurity ${violation}`);
  const noted = { "enforce-policy": "baseline:latest", "audit-violations": `would violate PodSecurity ${violation}` };
  assert.deepEqual([annotations, warnings], [noted, []]);
  const evaluated = [...metrics.matchAll(/^pod_security_evaluations_total\{decision="(\w+)".*mode="(\w+)".*\} (\d+)$/gm)];
  assert.deepEqual(
    evaluated.map(([, ...found]) => found.join(" ")),
    ["deny enforce 1", "deny audit 1"],
  );
});

for (const [subresource, isJudged] of [
  ...["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"].map((name) => [name, false] as const),
  ["ephemeralcontainers", true],
  ["unknown", true],
] as const) {
  test(`the subresource ${subresource} of a pod is ${isJudged ? "" : "not "}judged`, async () => {
    const { refusal } = await outcomeOf({ modes: { enforce: "baseline" } }, { ...aPod(), subresource });
    assert.equal(refusal, isJudged ? `pods "a" is forbidden: violates PodSecurity ${violation}` : "");
  });
}

for (const { version, label } of [
  { version: "v1.22", label: "v1.22" },
  { version: "v1.23", label: "v1.23" },
  { version: "v1.24", label: "future" },
  { version: "v1.99", label: "future" },
]) {
  test(`evaluations by the version ${version} are counted under ${label}`, async () => {
    const { metrics } = await outcomeOf({ modes: { enforce: "baseline", "enforce-version": version } }, aPod({ containers: [] }));
    const sample = `pod_security_evaluations_total{decision="allow",policy_level="baseline",policy_version="${label}",mode="enforce"`;
    assert.ok(metrics.split("\n").some((line) => line.startsWith(sample)));
  });
}

const apps = (resource: string) => ({ resource: { group: "apps", version: "v1", resource } });
const template = { metadata: {}, spec: bad };
for (const { name, resource, object } of [
  { name: "a deployment", resource: apps("deployments"), object: { spec: { template } } },
  { name: "a stateful set", resource: apps("statefulsets"), object: { spec: { template } } },
  { name: "a daemon set", resource: apps("daemonsets"), object: { spec: { template } } },
  { name: "a replica set", resource: apps("replicasets"), object: { spec: { template } } },
  {
    ...{
      name: "a replication controller",
      resource: { resource: { group: "", version: "v1", resource: "replicationcontrollers" } },
    },
    object: { spec: { template } },
  },
  { name: "a job", resource: { resource: { group: "batch", version: "v1", resource: "jobs" } }, object: { spec: { template } } },
]) {
  test(`${name} is warned about, not its subresources, and not refused where the namespace cannot be looked up`, async () => {
    const warned = await outcomeOf({ modes: { warn: "baseline" } }, { ...resource, object });
    assert.deepEqual([warned.refusal, warned.warnings], ["", [`would violate PodSecurity ${violation}`]]);
    const status = await outcomeOf({ modes: { warn: "baseline" } }, { ...resource, object, subresource: "status" });
    assert.deepEqual(status.warnings, []);
    const lost = await outcomeOf({}, { ...resource, object, namespace: "gone" });
    assert.deepEqual([lost.refusal, lost.annotations], ["", { error: "failed to lookup namespace gone" }]);
    assert.match(
      lost.metrics,
      /^pod_security_errors_total\{fatal="true",request_operation="create",resource="controller",subresource=""\} 1$/m,
    );
  });
}

const update = (next: object, before: object, name = "web") => ({
  ...{ operation: "UPDATE", resource: { group: "", version: "v1", resource: "namespaces" }, namespace: name, name },
  object: { metadata: { name, labels: labelled(next) } },
  oldObject: { metadata: { name, labels: labelled(before) } },
});
const oldPod = { metadata: { name: "old", namespace: "web" }, spec: bad };
const virtual = { metadata: { name: "virtual", namespace: "web" }, spec: { ...bad, hostPID: true, runtimeClassName: "vm" } };
const existing = [oldPod, virtual];
const about = (level: string, ...lines: string[]) => [
  `existing pods in namespace "web" violate the new PodSecurity enforce level "${level}"`,
  ...lines,
];
for (const { name, next, before, configuration, want } of [
  {
    name: "a stricter level",
    next: { enforce: "baseline" },
    before: {},
    want: about("baseline:latest", "old: host namespaces", "virtual: host namespaces"),
  },
  { name: "the same level", next: { enforce: "baseline" }, before: { enforce: "baseline" }, want: [] },
  { name: "a laxer level", next: { enforce: "baseline" }, before: { enforce: "restricted" }, want: [] },
  {
    name: "another version of the same level",
    ...{ next: { enforce: "baseline", "enforce-version": "v1.20" }, before: { enforce: "baseline" } },
    want: about("baseline:v1.20", "old: host namespaces", "virtual: host namespaces"),
  },
  { name: "a level that lets all be, of another version", next: { "enforce-version": "v1.20" }, before: {}, want: [] },
  {
    name: "a stricter level, beside pods of an exempt class",
    ...{ next: { enforce: "baseline" }, before: {}, configuration: { exemptions: { runtimeClasses: ["vm"] } } },
    want: about("baseline:latest", "old: host namespaces"),
  },
  {
    name: "a stricter level of an exempt namespace",
    ...{ next: { enforce: "baseline" }, before: {}, configuration: { exemptions: { namespaces: ["web"] } } },
    want: [],
  },
] as { name: string; next: object; before: object; configuration?: { exemptions: object }; want: string[] }[]) {
  test(`a namespace that gets ${name} is warned of ${want.length === 0 ? "nothing" : "its pods"}`, async () => {
    const { refusal, warnings, annotations } = await outcomeOf(
      { existing, ...(configuration && { configuration }) },
      update(next, before),
    );
    const joined = warnings
      .join("\n")
      .replace("old (and 1 other pod): host namespaces", "old: host namespaces\nvirtual: host namespaces");
    assert.deepEqual([refusal, joined.split("\n").filter((line) => line !== "")], ["", want]);
    assert.deepEqual(annotations, configuration && "namespaces" in configuration.exemptions ? { exempt: "namespace" } : {});
  });
}

test("labels that were invalid before do not block another change, new ones do", async () => {
  assert.equal((await outcomeOf({}, update({ enforce: "x", audit: "baseline" }, { enforce: "x" }))).refusal, "");
  for (const [next, before] of [
    [{ enforce: "x" }, {}],
    [{ enforce: "y" }, { enforce: "x" }],
    [{ enforce: "x", audit: "x" }, { enforce: "x" }],
  ] as const)
    assert.match((await outcomeOf({}, update(next, before))).refusal, /^Namespace "web" is invalid: .*must be one of privileged/);
});

const seccomp = "seccomp.security.alpha.kubernetes.io/pod";
const ofContainer = "container.seccomp.security.alpha.kubernetes.io/c";
const container = (image = "a", name = "c") => ({ name, image });
for (const { name, spec = {}, annotations = {}, isJudged } of [
  { name: "nothing", isJudged: false },
  { name: "another image", spec: { containers: [container("b")] }, isJudged: true },
  { name: "another image of an init container", spec: { initContainers: [container("b", "i")] }, isJudged: true },
  { name: "another image of an ephemeral container", spec: { ephemeralContainers: [container("b", "e")] }, isJudged: true },
  {
    name: "an ephemeral container more",
    spec: { ephemeralContainers: [container("a", "e"), container("a", "f")] },
    isJudged: true,
  },
  { name: "the pod's seccomp profile", annotations: { [seccomp]: "unconfined" }, isJudged: true },
  { name: "a container's seccomp profile", annotations: { [ofContainer]: "unconfined" }, isJudged: true },
  { name: "another annotation", annotations: { other: "x" }, isJudged: false },
  { name: "its deadline", spec: { activeDeadlineSeconds: 5 }, isJudged: false },
]) {
  test(`an update of a pod that changes ${name} is ${isJudged ? "" : "not "}judged`, async () => {
    const old = {
      ...bad,
      ...{ containers: [container()], initContainers: [container("a", "i")], ephemeralContainers: [container("a", "e")] },
    };
    const pod = (more: object, its: object) => ({ metadata: { name: "a", annotations: its }, spec: { ...old, ...more } });
    const write = { operation: "UPDATE", object: pod(spec, annotations), oldObject: pod({}, {}) };
    const { refusal } = await outcomeOf({ modes: { enforce: "baseline" } }, write);
    assert.equal(refusal, isJudged ? `pods "a" is forbidden: violates PodSecurity ${violation}` : "");
  });
}

for (const isBroken of [false, true]) {
  test(`a pod is refused where its namespace ${isBroken ? "cannot be read" : "does not exist"}`, async () => {
    const object = { metadata: { name: "a" }, spec: bad };
    const { refusal, annotations, metrics } = await outcomeOf({ isBroken }, { object, namespace: "gone" });
    assert.deepEqual([refusal, annotations], ["Internal error occurred: failed to lookup namespace gone", {}]);
    assert.match(
      metrics,
      /^pod_security_errors_total\{fatal="true",request_operation="create",resource="pod",subresource=""\} 1$/m,
    );
  });
}
