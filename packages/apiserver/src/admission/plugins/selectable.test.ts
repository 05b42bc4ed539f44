/** Plugins that are disabled by default, each on its own. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { randomOf } from "@coxswain/apimachinery/testing/random";
import type { Decision } from "../../authorization/authorizer.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { alwaysAdmit } from "./always-admit.ts";
import { alwaysDeny } from "./always-deny.ts";
import { eventRateLimit } from "./event-rate-limit.ts";
import { extendedResourceToleration } from "./extended-resource-toleration.ts";
import { imagePolicyWebhook } from "./image-policy-webhook.ts";
import { limitPodHardAntiAffinityTopology } from "./limit-pod-hard-anti-affinity-topology.ts";
import { ownerReferencesPermissionEnforcement } from "./owner-references-permission-enforcement.ts";
import { podNodeSelector } from "./pod-node-selector.ts";
import { covers, mergeTolerations, podTolerationRestriction } from "./pod-toleration-restriction.ts";
import { securityContextDeny } from "./security-context-deny.ts";

interface World {
  annotations?: Record<string, string>;
  configuration?: unknown;
  authorize?: (verb: string, resource: string, subresource: string, namespace: string) => Decision["decision"];
  clock?: ReturnType<typeof newFakeClock>;
}

function contextOf({ annotations = {}, configuration, authorize, clock = newFakeClock() }: World = {}): PluginContext {
  const namespace = { metadata: { name: "default", annotations } };
  return {
    informers: { for: () => ({ synced: true, lister: { get: () => namespace } }) },
    configurationOf: () => configuration,
    authorize: (requested: { verb: string; resource: string; subresource: string; namespace: string }) => ({
      decision: authorize?.(requested.verb, requested.resource, requested.subresource, requested.namespace) ?? "allow",
    }),
    versions: {
      ofKind: ({ kind }: { kind: string }) =>
        ({
          ReplicaSet: [{ resource: "replicasets", namespaced: true }],
          Any: [{ resource: "anys", namespaced: true }],
          Both: [
            { resource: "anys", namespaced: true },
            { resource: "boths", namespaced: false },
          ],
        })[kind] ?? [],
    },
    clock,
    log: discardLogger,
  } as unknown as PluginContext;
}

function write(object: object, more: Partial<AdmissionAttributes> = {}): AdmissionAttributes {
  return {
    operation: "CREATE",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    subresource: "",
    namespace: "default",
    name: "p",
    object: object as KubeObject,
    oldObject: undefined,
    user: { name: "jane", groups: [] },
    dryRun: false,
    signal: new AbortController().signal,
    warn() {},
    annotate() {},
    annotateContent() {},
    ...more,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into pods of every shape.
const aPod = (spec: object = {}, metadata: object = {}): any => ({
  metadata: { name: "p", ...metadata },
  spec: { containers: [{ name: "c", image: "busybox" }], ...spec },
});

async function run(plugin: AdmissionPlugin, attributes: AdmissionAttributes): Promise<string> {
  try {
    await plugin.admit?.(attributes);
    await plugin.validate?.(attributes);
    return "";
  } catch (err) {
    return (err as Error).message;
  }
}

for (const { name, spec, want } of [
  { name: "nothing", spec: {}, want: "" },
  {
    name: "the second container's user",
    spec: { containers: [{ name: "c" }, { name: "d", securityContext: { runAsUser: 7 } }] },
    want: "SecurityContext.RunAsUser is forbidden",
  },
  { name: "runAsNonRoot", spec: { securityContext: { runAsNonRoot: true } }, want: "" },
  { name: "a user", spec: { securityContext: { runAsUser: 0 } }, want: "pod.Spec.SecurityContext.RunAsUser is forbidden" },
  {
    name: "groups",
    spec: { securityContext: { supplementalGroups: [1] } },
    want: "pod.Spec.SecurityContext.SupplementalGroups is forbidden",
  },
  { name: "fsGroup", spec: { securityContext: { fsGroup: 1 } }, want: "pod.Spec.SecurityContext.FSGroup is forbidden" },
  {
    name: "the pod's SELinux label",
    spec: { securityContext: { seLinuxOptions: { level: "s0" } } },
    want: "pod.Spec.SecurityContext.SELinuxOptions is forbidden",
  },
  {
    name: "a container's SELinux label",
    spec: { containers: [{ name: "c", securityContext: { seLinuxOptions: { level: "s0" } } }] },
    want: "SecurityContext.SELinuxOptions is forbidden",
  },
  {
    name: "an init container's user",
    spec: { initContainers: [{ name: "i", securityContext: { runAsUser: 7 } }] },
    want: "SecurityContext.RunAsUser is forbidden",
  },
]) {
  test(`SecurityContextDeny and a pod with ${name}`, async () => {
    assert.equal(await run(securityContextDeny(), write(aPod(spec))), want && `pods "p" is forbidden: ${want}`);
  });
}

test("LimitPodHardAntiAffinityTopology allows required anti-affinity only with the topology key of the host name", async () => {
  const withKey = (topologyKey: string) =>
    aPod({ affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey }] } } });
  assert.equal(await run(limitPodHardAntiAffinityTopology(), write(withKey("kubernetes.io/hostname"))), "");
  assert.equal(
    await run(limitPodHardAntiAffinityTopology(), write(withKey("zone"))),
    'pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed',
  );
  const terms = ["kubernetes.io/hostname", "zone"].map((topologyKey) => ({ topologyKey }));
  const both = aPod({ affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } } });
  assert.match(await run(limitPodHardAntiAffinityTopology(), write(both)), /has TopologyKey zone/, "the second term too");
});

test("ExtendedResourceToleration tolerates what is requested, once", async () => {
  const pod = aPod({
    containers: [{ name: "c", resources: { requests: { "example.com/gpu": "1", cpu: "1", "kubernetes.io/x": "1" } } }],
    initContainers: [{ name: "i", resources: { requests: { "example.com/fpga": "1" } } }],
  });
  const wanted = ["example.com/fpga", "example.com/gpu"].map((key) => ({ key, operator: "Exists", effect: "NoSchedule" }));
  for (const _ of [1, 2]) {
    assert.equal(await run(extendedResourceToleration(), write(pod)), "");
    assert.deepEqual(pod.spec.tolerations, wanted);
  }
});

test("ExtendedResourceToleration takes none of the pod's own tolerations for its own but one of the same key, operator and effect", async () => {
  const key = "example.com/gpu";
  const own = [
    { key, operator: "Exists", effect: "NoSchedule", value: "x" },
    { key, operator: "Equal", effect: "NoSchedule" },
    { key, operator: "Exists", effect: "NoExecute" },
  ];
  const wanted = { key, operator: "Exists", effect: "NoSchedule" };
  const containers = [{ name: "c", resources: { requests: { [key]: "1" } } }];
  const pod = aPod({ containers, tolerations: own });
  assert.equal(await run(extendedResourceToleration(), write(pod)), "");
  assert.deepEqual(pod.spec.tolerations, [...own, wanted]);
  const timed = aPod({ containers, tolerations: [{ ...wanted, tolerationSeconds: 5 }] });
  assert.equal(await run(extendedResourceToleration(), write(timed)), "");
  assert.deepEqual(timed.spec.tolerations, [wanted]);
});

const selectors = {
  podNodeSelectorPluginConfig: { clusterDefaultNodeSelector: "pool=any", default: "pool=any,disk=ssd,zone=a" },
};
const selectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector";
for (const { name, own, annotation, configuration, want, selector } of [
  { name: "nothing is set", own: { a: "b" }, want: "", selector: { a: "b" } },
  { name: "the cluster has a default", configuration: selectors, want: "", selector: { pool: "any" } },
  { name: "the namespace has its own", annotation: "disk = ssd", configuration: selectors, want: "", selector: { disk: "ssd" } },
  { name: "the namespace wants none", annotation: "", configuration: selectors, want: "", selector: undefined },
  {
    name: "the pod wants another one",
    own: { disk: "hdd" },
    annotation: "disk=ssd",
    want: 'pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector',
  },
  {
    name: "the pod wants what is not allowed",
    own: { zone: "b" },
    configuration: selectors,
    want: 'pods "p" is forbidden: pod node label selector labels conflict with its namespace whitelist',
  },
  {
    name: "the pod has one of the two labels already",
    own: { disk: "ssd" },
    annotation: "disk=ssd,zone=a",
    want: "",
    selector: { zone: "a", disk: "ssd" },
  },
  { name: "the annotation is no selector", annotation: "a in (b)", want: "invalid selector: [a in (b)]" },
]) {
  test(`PodNodeSelector when ${name}, in each of its phases`, async () => {
    const annotations: Record<string, string> = annotation === undefined ? {} : { [selectorAnnotation]: annotation };
    const pod = aPod(own === undefined ? {} : { nodeSelector: own });
    const { admit, ...validating } = podNodeSelector(contextOf({ annotations, configuration }));
    assert.equal(await run({ admit, ...validating, validate: async () => {} }, write(pod)), want);
    if (want === "") assert.deepEqual(pod.spec.nodeSelector, selector);
    const sent = own === undefined ? {} : { nodeSelector: own };
    assert.equal(await run(validating, write(aPod(want === "" ? pod.spec : sent))), want);
  });
}

const a = { key: "a", operator: "Exists" as const, effect: "NoSchedule" as const };
const b = { key: "b", operator: "Equal" as const, value: "x", effect: "NoExecute" as const };
for (const { name, wide, narrow, want } of [
  { name: "itself", wide: a, narrow: a, want: true },
  { name: "another key", wide: a, narrow: b, want: false },
  { name: "everything", wide: { operator: "Exists" as const }, narrow: b, want: true },
  { name: "every effect", wide: { key: "b", operator: "Exists" as const }, narrow: b, want: true },
  { name: "every value", wide: { ...b, operator: "Exists" as const, value: undefined as never }, narrow: b, want: true },
  { name: "another value", wide: b, narrow: { ...b, value: "y" }, want: false },
  { name: "a longer time", wide: { ...b, tolerationSeconds: 10 }, narrow: { ...b, tolerationSeconds: 5 }, want: true },
  { name: "the same time", wide: { ...b, tolerationSeconds: 5 }, narrow: { ...b, tolerationSeconds: 5, value: "x" }, want: true },
  {
    name: "the same time for every value",
    wide: { key: "b", operator: "Exists" as const, effect: "NoExecute" as const, tolerationSeconds: 5 },
    narrow: { ...b, tolerationSeconds: 5 },
    want: true,
  },
  { name: "a shorter time", wide: { ...b, tolerationSeconds: 5 }, narrow: b, want: false },
]) {
  test(`a toleration against ${name}`, () => assert.equal(covers(wide, narrow), want));
}

test("merging keeps only tolerations that no other one covers", () => {
  assert.deepEqual(mergeTolerations([a, b], [a, { operator: "Exists", effect: "NoSchedule" }]), [
    b,
    { operator: "Exists", effect: "NoSchedule" },
  ]);
});

const tolerations = (name: string): string => `scheduler.alpha.kubernetes.io/${name}`;
test("PodTolerationRestriction adds the namespace's defaults, else the cluster's, and memory pressure", async () => {
  const configuration = { default: [b], whitelist: [] };
  const pod = aPod();
  assert.equal(await run(podTolerationRestriction(contextOf({ configuration })), write(pod)), "");
  assert.deepEqual(pod.spec.tolerations, [b]);
  const annotations = { [tolerations("defaultTolerations")]: JSON.stringify([a]) };
  const busy = aPod({ containers: [{ name: "c", resources: { requests: { cpu: "1" } } }] });
  assert.equal(await run(podTolerationRestriction(contextOf({ configuration, annotations })), write(busy)), "");
  assert.deepEqual(busy.spec.tolerations, [
    a,
    { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" },
  ]);
});

test("PodTolerationRestriction refuses what the whitelist does not cover", async () => {
  const annotations = { [tolerations("tolerationsWhitelist")]: JSON.stringify([a]) };
  const inNamespace = podTolerationRestriction(contextOf({ annotations }));
  assert.equal(await run(inNamespace, write(aPod({ tolerations: [a] }))), "");
  const text = "pod tolerations (possibly merged with namespace default tolerations) conflict with its";
  assert.equal(await run(inNamespace, write(aPod({ tolerations: [b] }))), `${text} namespace whitelist`);
  const inCluster = podTolerationRestriction(contextOf({ configuration: { whitelist: [a] } }));
  assert.equal(await run(inCluster, write(aPod({ tolerations: [b] }))), `${text} cluster whitelist`);
});

test("merging keeps what the comparison of all pairs keeps", () => {
  const random = randomOf(1);
  const oneOf = <T>(...values: T[]): T => values[Math.floor(random() * values.length)] as T;
  const some = (): Toleration =>
    ({
      ...{ key: oneOf("a", "b", undefined), operator: oneOf("Exists", "Equal", "", "other", undefined) },
      ...{ value: oneOf("x", "y", "", undefined), effect: oneOf("NoExecute", "NoSchedule", "", undefined) },
      tolerationSeconds: oneOf(1, 2, undefined),
    }) as Toleration;
  for (let round = 0; round < 2000; round++) {
    const all = Array.from({ length: 6 }, some);
    const kept: Toleration[] = [];
    for (const [at, each] of all.entries()) {
      const isCoveredLater = all.slice(at + 1).some((other) => !semanticEqual(other, each) && covers(other, each));
      if (!isCoveredLater && !kept.some((other) => covers(other, each))) kept.push(each);
    }
    assert.deepEqual(mergeTolerations(all.slice(0, 4), all.slice(4)), kept);
  }
});

test("merging takes time that is linear in the number of tolerations", () => {
  for (const differing of ["key", "value", "tolerationSeconds"]) {
    const many = Array.from({ length: 20_000 }, (_, at) => ({
      ...b,
      [differing]: differing === "tolerationSeconds" ? at : `k${at}`,
    }));
    const ms = cpuMsOf(() => mergeTolerations(many, [a]));
    assert.ok(ms < 3000, `${ms} ms`); // 60 s for all pairs
  }
});

test("merging keeps one of two equal tolerations", () => {
  assert.deepEqual(mergeTolerations([a, b], [b, a]), [a, b]);
});

test("PodTolerationRestriction adds defaults to new pods only, and memory pressure for init containers too", async () => {
  const plugin = podTolerationRestriction(contextOf({ configuration: { default: [b] } }));
  const initContainers = [{ name: "i", resources: { limits: { memory: "1Gi" } } }];
  const changed = aPod({ initContainers });
  assert.equal(await run(plugin, write(changed, { operation: "UPDATE", oldObject: aPod() })), "");
  const memoryPressure = { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" };
  assert.deepEqual(changed.spec.tolerations, [memoryPressure]);
});

test("PodTolerationRestriction takes requests and limits of zero for none, and refuses an annotation that it cannot read", async () => {
  for (const amount of ["0", "0m", "0.0", "00Gi"]) {
    const pod = aPod({ containers: [{ name: "c", resources: { requests: { cpu: amount }, limits: { memory: amount } } }] });
    assert.equal(await run(podTolerationRestriction(contextOf()), write(pod)), "");
    assert.equal(pod.spec.tolerations, undefined, amount);
  }
  for (const [name, text, want] of [
    ["defaultTolerations", "{", /JSON/i],
    ["tolerationsWhitelist", "{}", /^annotation .*tolerationsWhitelist: not a list of tolerations$/],
  ] as const) {
    const plugin = podTolerationRestriction(contextOf({ annotations: { [tolerations(name)]: text } }));
    assert.match(await run(plugin, write(aPod({ tolerations: [a] }))), want);
  }
});

test("PodTolerationRestriction: the second toleration has to be allowed too, and an empty list of the namespace allows all", async () => {
  const configuration = { whitelist: [a] };
  assert.match(
    await run(podTolerationRestriction(contextOf({ configuration })), write(aPod({ tolerations: [a, b] }))),
    /cluster/,
  );
  for (const own of ["", "[]"]) {
    const annotations = { [tolerations("tolerationsWhitelist")]: own };
    const plugin = podTolerationRestriction(contextOf({ configuration, annotations }));
    assert.equal(await run(plugin, write(aPod({ tolerations: [a, b] }))), "");
  }
});

const anEvent = (namespace = "default", user = "jane", more: Partial<AdmissionAttributes> = {}): AdmissionAttributes =>
  write(
    { metadata: { name: "e" }, source: { component: "c" }, involvedObject: { kind: "Pod", name: "p" } },
    { kind: { group: "", version: "v1", kind: "Event" }, namespace, user: { name: user, groups: [] }, ...more },
  );

test("EventRateLimit counts by the limit's key and fills up with time", async () => {
  const clock = newFakeClock();
  const configuration = { limits: [{ type: "Namespace", qps: 1, burst: 2 }] };
  const plugin = eventRateLimit(contextOf({ configuration, clock }));
  const refused = "Too many requests: limit reached on type Namespace for key default";
  assert.equal(await run(plugin, anEvent()), "");
  assert.equal(await run(plugin, anEvent()), "");
  assert.equal(await run(plugin, anEvent()), refused);
  assert.equal(await run(plugin, anEvent("other")), "");
  assert.equal(await run(plugin, anEvent("default", "jane", { dryRun: true })), "");
  assert.equal(await run(plugin, write(aPod())), "");
  await clock.advance(1000);
  assert.equal(await run(plugin, anEvent()), "");
  assert.equal(await run(plugin, anEvent()), refused);
});

for (const { name, limits, want } of [
  { name: "none", limits: [], want: "limits: Required value: limits must have at least one item" },
  {
    name: "a type that does not exist",
    limits: [{ type: "X", qps: 1, burst: 1 }],
    want: 'limits[0].type: Unsupported value: "X"',
  },
  { name: "no burst", limits: [{ type: "User", qps: 1 }], want: "limits[0].burst: Invalid value: 0: must be positive" },
]) {
  test(`EventRateLimit refuses a configuration with ${name}`, () => {
    assert.throws(
      () => eventRateLimit(contextOf({ configuration: { limits } })),
      (err: Error) => err.message.includes(want),
    );
  });
}

const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "1" };
const blocking = { ...owner, blockOwnerDeletion: true };
for (const { name, operation = "UPDATE" as const, before, after, deny, want } of [
  { name: "no owner", after: [], deny: "delete", want: "" },
  { name: "an owner that stays", before: [owner], after: [owner], deny: "delete", want: "" },
  { name: "an owner", after: [owner], deny: "delete", want: "cannot set an ownerRef on a resource you can't delete: , <nil>" },
  { name: "an owner from the start", operation: "CREATE" as const, after: [owner], deny: "delete", want: "" },
  { name: "an owner, without finalizers", after: [owner], deny: "update", want: "" },
  {
    name: "a blocking owner",
    after: [blocking],
    deny: "update",
    want: "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
  },
  {
    name: "an owner that blocked before",
    before: [blocking],
    after: [blocking, { ...owner, uid: "2" }],
    deny: "update",
    want: "",
  },
  {
    name: "a blocking owner of no known kind",
    after: [{ ...blocking, kind: "Ghost" }],
    want: 'cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion apps/v1 Kind Ghost: no matches for kind "Ghost" in version "apps/v1"',
  },
]) {
  test(`OwnerReferencesPermissionEnforcement and ${name}`, async () => {
    const plugin = ownerReferencesPermissionEnforcement(
      contextOf({ authorize: (verb) => (verb === deny ? "no-opinion" : "allow") }),
    );
    const attributes = write(aPod({}, { ownerReferences: after }), {
      operation,
      oldObject: operation === "UPDATE" ? aPod({}, { ownerReferences: before }) : undefined,
    });
    assert.equal(await run(plugin, attributes), want && `pods "p" is forbidden: ${want}`);
  });
}

test("ImagePolicyWebhook reviews images, caches the answer, and applies the default without one", async (t) => {
  const requested: { spec: object }[] = [];
  const backend = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const review = JSON.parse(Buffer.concat(chunks).toString());
      requested.push(review);
      const allowed = !JSON.stringify(review.spec).includes("evil");
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...review, status: allowed ? { allowed } : { allowed, reason: "evil" } }));
    });
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  t.after(() => backend.close());
  const kubeConfigFile = kubeconfigFor(t, (backend.address() as AddressInfo).port);
  const plugin = imagePolicyWebhook(contextOf({ configuration: { imagePolicy: { kubeConfigFile } } }));
  const annotated = aPod({}, { annotations: { "x.image-policy.k8s.io/ticket": "1", other: "2" } });
  assert.equal(await run(plugin, write(annotated)), "");
  assert.equal(await run(plugin, write(annotated)), "");
  assert.deepEqual(
    requested.map(({ spec }) => spec),
    [{ containers: [{ image: "busybox" }], annotations: { "x.image-policy.k8s.io/ticket": "1" }, namespace: "default" }],
  );
  assert.equal(
    await run(plugin, write(aPod({ initContainers: [{ name: "i", image: "evil" }] }))),
    'pods "p" is forbidden: image policy webhook backend denied one or more images: evil',
  );
  const nobody = kubeconfigFor(t, 1);
  for (const defaultAllow of [true, false]) {
    const lost = imagePolicyWebhook(contextOf({ configuration: { imagePolicy: { kubeConfigFile: nobody, defaultAllow } } }));
    assert.equal((await run(lost, write(aPod()))) === "", defaultAllow);
  }
  assert.throws(() => imagePolicyWebhook(contextOf({ configuration: { imagePolicy: { kubeConfigFile, allowTTL: 100_000 } } })), {
    message: "valid value is between 1s and 30m0s, got 27h46m40s",
  });
});

function kubeconfigFor(t: TestContext, port: number): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-image-policy-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "kubeconfig");
  const cluster = { name: "c", cluster: { server: `http://127.0.0.1:${port}/policy` } };
  const context = { name: "x", context: { cluster: "c", user: "u" } };
  writeFileSync(
    path,
    JSON.stringify({ clusters: [cluster], contexts: [context], users: [{ name: "u", user: {} }], "current-context": "x" }),
  );
  return path;
}

for (const operation of ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const) {
  test(`AlwaysAdmit lets a ${operation} be, AlwaysDeny refuses it`, async () => {
    assert.equal(alwaysAdmit().handles(operation), false);
    const deny = alwaysDeny();
    assert.equal(deny.handles(operation), true);
    const refusal = 'pods "p" is forbidden: admission control is denying all modifications';
    await assert.rejects(async () => deny.admit?.(write(aPod(), { operation })), { message: refusal });
    await assert.rejects(async () => deny.validate?.(write(aPod(), { operation })), { message: refusal });
  });
}

test("ImagePolicyWebhook adds the backend's verdict to the audit annotations, or that it was not called", async (t) => {
  const backend = createServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ status: { allowed: true, auditAnnotations: { ticket: "42" } } }));
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
  t.after(() => backend.close());
  for (const [port, want] of [
    [(backend.address() as AddressInfo).port, "ticket=42"],
    [1, "failed-open=true"],
  ] as const) {
    const kubeConfigFile = kubeconfigFor(t, port);
    const plugin = imagePolicyWebhook(contextOf({ configuration: { imagePolicy: { kubeConfigFile, defaultAllow: true } } }));
    const reported: string[] = [];
    const annotate = (key: string, value: string): void => void reported.push(`${key}=${value}`);
    for (const subresource of ["", "ephemeralcontainers"]) {
      assert.equal(
        await run(plugin, write(aPod({ ephemeralContainers: [{ name: "e", image: "x" }] }), { subresource, annotate })),
        "",
      );
    }
    assert.deepEqual(reported, Array(2).fill(`imagepolicywebhook.image-policy.k8s.io/${want}`));
  }
});

const kept = { apiVersion: "v1", kind: "ReplicaSet", name: "kept", uid: "0" };
for (const { name, before, after, want } of [
  {
    name: "a second owner that blocks, behind one that does not",
    before: [],
    after: [kept, { ...owner, blockOwnerDeletion: true }],
    want: /can't set finalizers on/,
  },
  {
    name: "a second owner that blocks, behind one that blocked before",
    before: [{ ...kept, blockOwnerDeletion: true }],
    after: [
      { ...kept, blockOwnerDeletion: true },
      { ...owner, blockOwnerDeletion: true },
    ],
    want: /can't set finalizers on/,
  },
  {
    name: "two owners that block",
    before: [],
    after: [
      { ...owner, kind: "Any", blockOwnerDeletion: true },
      { ...owner, uid: "2", blockOwnerDeletion: true },
    ],
    want: /can't set finalizers on/,
  },
  { name: "an owner that is removed", before: [owner], after: [], want: /^$/ },
  {
    name: "an owner that begins to block",
    before: [owner],
    after: [{ ...owner, blockOwnerDeletion: true }],
    want: /can't set finalizers on/,
  },
  {
    name: "an owner of the same name that is another one",
    before: [{ ...owner, uid: "old", blockOwnerDeletion: true }],
    after: [{ ...owner, blockOwnerDeletion: true }],
    want: /can't set finalizers on/,
  },
  { name: "an owner that stops to block", before: [{ ...owner, blockOwnerDeletion: true }], after: [owner], want: /^$/ },
]) {
  test(`OwnerReferencesPermissionEnforcement looks at ${name}`, async () => {
    const requested: string[] = [];
    const authorize = (verb: string, resource: string, subresource: string) => {
      requested.push(`${verb} ${resource}/${subresource}`);
      return subresource === "finalizers" && resource !== "anys" ? ("deny" as const) : ("allow" as const);
    };
    const object = { metadata: { name: "p", ownerReferences: after } };
    const oldObject = { metadata: { name: "p", ownerReferences: before } } as KubeObject;
    const attributes = write(object, { operation: "UPDATE", oldObject });
    const plugin = ownerReferencesPermissionEnforcement(contextOf({ authorize }));
    const refusal = await Promise.resolve(plugin.validate?.(attributes)).then(
      () => "",
      (err: Error) => err.message,
    );
    assert.match(refusal, want);
    assert.equal(requested[0], "delete pods/"); // checked for every owner change: the object may be collected from then on
  });
}

test("OwnerReferencesPermissionEnforcement checks the permissions for each resource of the owner's kind, in its scope", async () => {
  const asked: string[] = [];
  const authorize = (_verb: string, resource: string, _subresource: string, namespace: string) => {
    asked.push(`${resource} in ${JSON.stringify(namespace)}`);
    return resource === "boths" ? ("no-opinion" as const) : ("allow" as const);
  };
  const plugin = ownerReferencesPermissionEnforcement(contextOf({ authorize }));
  const object = { metadata: { name: "p", ownerReferences: [{ ...owner, kind: "Both", blockOwnerDeletion: true }] } };
  assert.match(await run(plugin, write(object)), /can't set finalizers on/);
  assert.deepEqual(asked, ['anys in "default"', 'boths in ""']);
});
