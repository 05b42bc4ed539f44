/** Plugins that fill in what a new object leaves open, each on its own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { runtimeClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { alwaysPullImages } from "./always-pull-images.ts";
import { defaultIngressClass } from "./default-ingress-class.ts";
import { defaultStorageClass } from "./default-storage-class.ts";
import { defaultTolerationSeconds } from "./default-toleration-seconds.ts";
import { runtimeClass } from "./runtime-class.ts";
import { storageObjectInUseProtection } from "./storage-object-in-use-protection.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition.ts";

interface Write {
  readonly resource?: string;
  readonly group?: string;
  readonly subresource?: string;
  readonly operation?: string;
  readonly oldObject?: object;
}

function write(object: object, { resource = "pods", group = "", ...more }: Write = {}): AdmissionAttributes<never> {
  const attributes = { operation: "CREATE", resource: { group, version: "v1", resource }, subresource: "", name: "a", object };
  return { ...attributes, ...more } as unknown as AdmissionAttributes<never>;
}

/** A context whose caches hold these objects. @param stored what the API knows besides */
function contextOf(cached: readonly object[], stored: readonly KubeObject[] = [], hasGates = true) {
  const client = newFakeClient();
  client.put(runtimeClasses, ...stored);
  const objects = cached as readonly KubeObject[];
  const lister = { list: () => objects, get: (name: string) => objects.find(({ metadata }) => metadata.name === name) };
  const context = {
    ...{ client, informers: { for: () => ({ synced: true, lister }) } },
    ...{ defaultNotReadyTolerationSeconds: 30, defaultUnreachableTolerationSeconds: 60, featureEnabled: () => hasGates },
  } as unknown as PluginContext;
  return { client, context };
}

const [notReady, unreachable] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const everything = { operator: "Exists" };
for (const { name, tolerations, want, operation = "CREATE" } of [
  { name: "none", tolerations: undefined, want: [30, 60] },
  { name: "none, on an update", tolerations: undefined, operation: "UPDATE", want: [30, 60] },
  { name: "one for everything", tolerations: [everything], want: [] },
  { name: "one for every key, but other effects", tolerations: [{ ...everything, effect: "NoSchedule" }], want: [30, 60] },
  { name: "one for nodes that are not ready", tolerations: [{ key: notReady, ...everything }], want: [60] },
  { name: "one for unreachable nodes", tolerations: [{ key: unreachable, effect: "NoExecute" }], want: [30] },
  { name: "one for another effect", tolerations: [{ key: unreachable, effect: "NoSchedule" }], want: [30, 60] },
  { name: "both", tolerations: [{ key: notReady }, { key: unreachable }], want: [] },
]) {
  test(`DefaultTolerationSeconds and a pod with tolerations: ${name}`, async () => {
    const plugin = defaultTolerationSeconds(contextOf([]).context);
    assert.equal(plugin.handles(operation as "CREATE"), true);
    const pod = { spec: { tolerations: tolerations as { key?: string; tolerationSeconds?: number }[] | undefined } };
    await plugin.admit?.(write(pod, { operation }));
    const added = (pod.spec.tolerations ?? []).slice(tolerations?.length ?? 0);
    const keys = { 30: notReady, 60: unreachable };
    assert.deepEqual(
      added,
      want.map((tolerationSeconds) => ({
        ...{ key: keys[tolerationSeconds as 30], operator: "Exists", effect: "NoExecute", tolerationSeconds },
      })),
    );
    assert.deepEqual((pod.spec.tolerations ?? []).slice(0, tolerations?.length ?? 0), tolerations ?? [], "its own stay");
    const bare = { spec: {} };
    await plugin.admit?.(write(bare, { operation, subresource: "status" }));
    assert.deepEqual(bare, { spec: {} }, "of a subresource nothing is changed");
  });
}

const classNamed = (name: string, annotations: object) => ({ metadata: { name, annotations } });
for (const { plugin, field, resource, group, mark, also, legacy, tooMany } of [
  {
    ...{ plugin: defaultStorageClass, resource: "persistentvolumeclaims", group: "", field: "storageClassName" },
    ...{ mark: "storageclass.kubernetes.io/is-default-class", legacy: "volume.beta.kubernetes.io/storage-class" },
    ...{ also: "storageclass.beta.kubernetes.io/is-default-class", tooMany: /2 default StorageClasses were found$/ },
  },
  {
    ...{ plugin: defaultIngressClass, resource: "ingresses", group: "networking.k8s.io", field: "ingressClassName" },
    ...{ mark: "ingressclass.kubernetes.io/is-default-class", legacy: "kubernetes.io/ingress.class" },
    also: "ingressclass.kubernetes.io/is-default-class",
    tooMany: /2 default IngressClasses were found, only 1 allowed$/,
  },
]) {
  test(`the default class of ${resource} is the one that says so, beside the rest of the spec, and not for subresources`, async () => {
    const classes = [
      classNamed("no", { [mark]: "false" }),
      classNamed("empty", { [mark]: "" }),
      classNamed("yes", { [mark]: "true" }),
    ];
    const admitted = async (cached: object[], subresource = "", annotations: object = {}) => {
      const object = { metadata: { annotations }, spec: { other: 1 } };
      await plugin(contextOf(cached).context).admit?.(write(object, { resource, group, subresource }));
      return object.spec;
    };
    assert.deepEqual(await admitted(classes), { other: 1, [field]: "yes" });
    assert.deepEqual(await admitted(classes.slice(0, 2)), { other: 1 });
    assert.deepEqual(await admitted(classes, "status"), { other: 1 });
    assert.deepEqual(await admitted(classes, "", { [legacy]: "" }), { other: 1 }, "an annotation names the class, even none");
    assert.deepEqual(await admitted([classNamed("also", { [also]: "true" })]), { other: 1, [field]: "also" });
    await assert.rejects(admitted([...classes, classNamed("also", { [also]: "true" })]), tooMany);
  });
}

test("a new node keeps its own taints, and has the taint of nodes that are not ready once", async () => {
  const taint = { key: notReady, effect: "NoSchedule" };
  for (const [own, added] of [
    [[{ key: "dedicated", effect: "NoExecute" }], [taint]],
    [[{ key: notReady, effect: "NoExecute" }], [taint]],
    [[{ key: "dedicated", effect: "NoSchedule" }, taint], []],
  ] as const) {
    const node = { metadata: { name: "n" }, spec: { podCIDR: "10.0.0.0/24", taints: [...own] as object[] } };
    await taintNodesByCondition().admit?.(write(node, { resource: "nodes" }));
    assert.deepEqual(node.spec, { podCIDR: "10.0.0.0/24", taints: [...own, ...added] });
  }
});

test("a new volume or claim keeps its own finalizers and has that of its protection once", async () => {
  for (const [resource, finalizer] of [
    ["persistentvolumes", "kubernetes.io/pv-protection"],
    ["persistentvolumeclaims", "kubernetes.io/pvc-protection"],
  ] as const)
    for (const own of [["example.com/own"], ["example.com/own", finalizer]]) {
      const object = { metadata: { name: "a", finalizers: own } };
      await storageObjectInUseProtection().admit?.(write(object, { resource }));
      assert.deepEqual(object.metadata.finalizers, ["example.com/own", finalizer]);
    }
});

const podOf = (...images: string[]) => ({
  metadata: { name: "a" },
  spec: { containers: images.map((image, at) => ({ name: `c${at}`, image, imagePullPolicy: "Never" })) },
});
for (const { name, images, want } of [
  { name: "no new image", images: ["a", "b"], want: ["Never", "Never"] },
  { name: "a new image in the second of two containers", images: ["a", "new"], want: ["Always", "Always"] },
  { name: "its two images exchanged", images: ["b", "a"], want: ["Never", "Never"] },
]) {
  test(`AlwaysPullImages and an update with ${name}`, async () => {
    const pod = podOf(...images);
    const attributes = write(pod, { operation: "UPDATE", oldObject: podOf("a", "b") });
    const plugin = alwaysPullImages();
    const refusal = await refusalOf(plugin, attributes, ["validate"]);
    const paths = [0, 1].map(
      (at) => `spec.containers[${at}].imagePullPolicy: Unsupported value: "Never": supported values: "Always"`,
    );
    assert.equal(refusal, want[0] === "Never" ? "" : `pods "a" is forbidden: [${paths.join(", ")}]`);
    await plugin.admit?.(attributes);
    assert.deepEqual(
      pod.spec.containers.map(({ imagePullPolicy }) => imagePullPolicy),
      want,
    );
    assert.equal(await refusalOf(plugin, attributes, ["validate"]), "");
  });
}

async function refusalOf(plugin: AdmissionPlugin<never>, attributes: AdmissionAttributes<never>, stages = ["admit", "validate"]) {
  try {
    if (stages.includes("admit")) await plugin.admit?.(attributes);
    if (stages.includes("validate")) await plugin.validate?.(attributes);
    return "";
  } catch (err) {
    return (err as Error).message;
  }
}

const vm = (more: object): KubeObject => ({ metadata: { name: "vm" }, ...more });
const tolerating = (...keys: string[]) => keys.map((key) => ({ key, operator: "Exists", effect: "NoSchedule" }));

test("a pod's own selector and tolerations stay beside those of its runtime class", async () => {
  const scheduling = { nodeSelector: { vm: "yes", arch: "arm" }, tolerations: tolerating("vm", "own") };
  const pod = { spec: { runtimeClassName: "vm", nodeSelector: { disk: "ssd", arch: "arm" }, tolerations: tolerating("own") } };
  assert.equal(await refusalOf(runtimeClass(contextOf([vm({ scheduling })]).context) as never, write(pod)), "");
  assert.deepEqual(pod.spec.nodeSelector, { disk: "ssd", arch: "arm", vm: "yes" });
  assert.deepEqual(pod.spec.tolerations, tolerating("own", "vm"));
});

test("a toleration that another one of the pod or of its runtime class covers is left out", async () => {
  const all = { operator: "Exists", effect: "NoSchedule" };
  for (const [own, given] of [
    [[all], tolerating("vm")],
    [tolerating("vm", "own"), [all]],
  ] as const) {
    const pod = { spec: { runtimeClassName: "vm", tolerations: [...own] as object[] } };
    await runtimeClass(contextOf([vm({ scheduling: { tolerations: given } })]).context).admit?.(write(pod));
    assert.deepEqual(pod.spec.tolerations, [all]);
  }
});

const mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
for (const { name, overhead, podFixed, want } of [
  { name: "the class's overhead", overhead: { cpu: "1" }, podFixed: { cpu: "1" }, want: "" },
  { name: "another overhead", overhead: { cpu: "2" }, podFixed: { cpu: "1" }, want: mismatch },
  { name: "no overhead", overhead: undefined, podFixed: { cpu: "1" }, want: mismatch },
  {
    ...{ name: "an overhead that the class does not define", overhead: { cpu: "1" }, podFixed: undefined },
    want: "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
  },
  { name: "an empty overhead where the class defines none", overhead: {}, podFixed: undefined, want: "" },
]) {
  test(`a pod that has ${name} after admission is ${want === "" ? "taken" : "refused"}`, async () => {
    const plugin = runtimeClass(contextOf([vm(podFixed === undefined ? {} : { overhead: { podFixed } })]).context) as never;
    const pod = { spec: { runtimeClassName: "vm", overhead } };
    assert.equal(await refusalOf(plugin, write(pod), ["validate"]), want && `pods "a" is forbidden: ${want}`);
  });
}

test("a pod without a runtime class may not have an overhead", async () => {
  const plugin = runtimeClass(contextOf([vm({ overhead: { podFixed: { cpu: "1" } } })]).context) as never;
  for (const runtimeClassName of [undefined, ""]) {
    assert.equal(await refusalOf(plugin, write({ spec: { runtimeClassName } })), "");
    assert.equal(
      await refusalOf(plugin, write({ spec: { runtimeClassName, overhead: { cpu: "1" } } })),
      'pods "a" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    );
  }
});

test("without PodOverhead a pod gets no overhead of its runtime class, and keeps its own, which the registry drops", async () => {
  const { context } = contextOf([vm({ overhead: { podFixed: { cpu: "1" } } })], [], false);
  for (const overhead of [undefined, { cpu: "2" }]) {
    const pod = { spec: { runtimeClassName: "vm", overhead } };
    assert.equal(await refusalOf(runtimeClass(context) as never, write(pod)), "");
    assert.deepEqual(pod.spec.overhead, overhead);
  }
});

test("a runtime class that the cache lacks is read from the API, whose failure is the answer", async () => {
  const { client, context } = contextOf([], [vm({ overhead: { podFixed: { cpu: "1" } } })]);
  const pod = () => ({ spec: { runtimeClassName: "vm" } as { runtimeClassName: string; overhead?: object } });
  const admitted = pod();
  assert.equal(await refusalOf(runtimeClass(context) as never, write(admitted)), "");
  assert.deepEqual(admitted.spec.overhead, { cpu: "1" });
  client.react("get", "runtimeclasses", () => {
    throw internalError(new Error("etcd is away"));
  });
  assert.match(await refusalOf(runtimeClass(context) as never, write(pod())), /^Internal error occurred: etcd is away/);
});
