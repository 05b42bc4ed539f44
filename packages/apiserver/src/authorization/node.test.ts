import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attributes, Decision } from "./authorizer.ts";
import { type NodeGraph, nodeAuthorizer } from "./node.ts";
import { podReferences, referenceKey, volumeSecretReferences } from "./pod-references.ts";

const graph: NodeGraph = {
  synced: true,
  refersTo: (node, kind, namespace, name) => node === "n1" && `${kind}/${namespace}/${name}`.endsWith("/web/mine"),
};
const rules = [{ verbs: ["get", "list", "watch"], apiGroups: [""], resources: ["pods", "services"] }];
const authorize = nodeAuthorizer(graph, rules);
const kubelet = { name: "system:node:n1", groups: ["system:nodes"] };

function asks(changes: Partial<Attributes>): Attributes {
  return {
    user: kubelet,
    verb: "get",
    isResourceRequest: true,
    namespace: "web",
    group: "",
    version: "v1",
    resource: "secrets",
    subresource: "",
    name: "mine",
    path: "",
    ...changes,
  };
}

const lease = { group: "coordination.k8s.io", resource: "leases", namespace: "kube-node-lease", name: "n1" };
const csiNode = { group: "storage.k8s.io", resource: "csinodes", namespace: "", name: "n1" };
for (const { name, changes, allowed } of [
  { name: "read a secret of its pods", changes: {}, allowed: true },
  { name: "watch that secret by name", changes: { verb: "watch" }, allowed: true },
  { name: "read another secret", changes: { name: "other" }, allowed: false },
  { name: "list secrets", changes: { verb: "list", name: "" }, allowed: false },
  { name: "write a secret", changes: { verb: "update" }, allowed: false },
  { name: "read a config map of its pods", changes: { resource: "configmaps" }, allowed: true },
  {
    name: "ask for a token of its pods' account",
    changes: { verb: "create", resource: "serviceaccounts", subresource: "token" },
    allowed: true,
  },
  {
    name: "ask for another account's token",
    changes: { verb: "create", resource: "serviceaccounts", subresource: "token", name: "x" },
    allowed: false,
  },
  { name: "read that account", changes: { resource: "serviceaccounts" }, allowed: false },
  { name: "renew its lease", changes: { ...lease, verb: "update" }, allowed: true },
  { name: "renew another's lease", changes: { ...lease, verb: "update", name: "n2" }, allowed: false },
  { name: "create a lease, whose name is in its body", changes: { ...lease, verb: "create", name: "" }, allowed: true },
  ...["get", "patch", "delete"].map((verb) => ({ name: `${verb} its lease`, changes: { ...lease, verb }, allowed: true })),
  ...["list", "watch", "deletecollection"].map((verb) => ({
    name: `${verb} its lease alone`,
    changes: { ...lease, verb },
    allowed: false,
  })),
  { name: "delete another's lease", changes: { ...lease, verb: "delete", name: "n2" }, allowed: false },
  { name: "touch leases elsewhere", changes: { ...lease, namespace: "web" }, allowed: false },
  { name: "write its CSINode", changes: { ...csiNode, verb: "patch" }, allowed: true },
  { name: "create a CSINode, whose name is in its body", changes: { ...csiNode, verb: "create", name: "" }, allowed: true },
  { name: "delete its CSINode", changes: { ...csiNode, verb: "delete" }, allowed: true },
  { name: "delete another's CSINode", changes: { ...csiNode, verb: "delete", name: "n2" }, allowed: false },
  { name: "list its CSINode alone", changes: { ...csiNode, verb: "list" }, allowed: false },
  { name: "write another's CSINode", changes: { ...csiNode, verb: "patch", name: "n2" }, allowed: false },
  { name: "write a subresource of its CSINode", changes: { ...csiNode, verb: "patch", subresource: "status" }, allowed: false },
  { name: "read a claim of its pods", changes: { resource: "persistentvolumeclaims" }, allowed: true },
  { name: "read that claim's scale", changes: { resource: "persistentvolumeclaims", subresource: "scale" }, allowed: false },
  { name: "list the claims of its pods", changes: { resource: "persistentvolumeclaims", verb: "list" }, allowed: false },
  ...["update", "patch"].map((verb) => ({
    name: `${verb} that claim's status`,
    changes: { resource: "persistentvolumeclaims", subresource: "status", verb },
    allowed: true,
  })),
  {
    name: "write another claim's status",
    changes: { resource: "persistentvolumeclaims", subresource: "status", verb: "patch", name: "other" },
    allowed: false,
  },
  { name: "read that claim's status", changes: { resource: "persistentvolumeclaims", subresource: "status" }, allowed: false },
  { name: "read a subresource of that config map", changes: { resource: "configmaps", subresource: "x" }, allowed: false },
  { name: "do what the fixed rules say", changes: { resource: "pods", verb: "list", name: "", namespace: "" }, allowed: true },
  { name: "do what they do not say", changes: { resource: "pods", verb: "delete" }, allowed: false },
  {
    name: "use the rights of a node without its group",
    changes: { user: { name: "system:node:n1", groups: [] } },
    allowed: false,
  },
] as { name: string; changes: Partial<Attributes>; allowed: boolean }[]) {
  test(`a node agent may ${allowed ? "" : "not "}${name}`, async () => {
    assert.equal(((await authorize(asks(changes))) as Decision).decision, allowed ? "allow" : "no-opinion");
  });
}

for (const { changes, reason } of [
  {
    changes: { verb: "create", subresource: "token", name: "" },
    reason: "can only create tokens for individual service accounts",
  },
  { changes: { verb: "create", subresource: "" }, reason: "can only create token subresource of serviceaccount" },
  {
    changes: { verb: "create", subresource: "token", name: "other" },
    reason: "no relationship found between node 'n1' and this object",
  },
]) {
  test(`a node agent may see accounts: ${reason}`, async () => {
    const decision = (await authorize(asks({ resource: "serviceaccounts", ...changes }))) as Decision;
    assert.deepEqual(decision, { decision: "no-opinion", reason });
  });
}

for (const { changes, reason } of [
  { changes: { name: "" }, reason: "No Object name found" },
  { changes: { namespace: "" }, reason: "can only read namespaced object of this type" },
  { changes: { subresource: "x" }, reason: "cannot read subresource" },
  { changes: { verb: "delete" }, reason: "can only read resources of this type" },
]) {
  test(`a node agent that is related to everything is told of secrets: ${reason}`, async () => {
    const toAll = nodeAuthorizer({ synced: true, refersTo: () => true }, []);
    assert.deepEqual(await toAll(asks(changes)), { decision: "no-opinion", reason });
  });
}

test("a pod refers to what each of its parts names, a mirror pod to nothing", () => {
  const metadata = { name: "p", namespace: "web" };
  const spec = {
    serviceAccountName: "robot",
    imagePullSecrets: [{ name: "pull" }, { name: "pull-too" }],
    initContainers: [{ name: "i", envFrom: [{ secretRef: { name: "init" } }, { configMapRef: { name: "init" } }] }],
    containers: [{ name: "c", env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "settings", key: "a" } } }] }],
    ephemeralContainers: [{ name: "e", env: [{ name: "A", valueFrom: { secretKeyRef: { name: "debug", key: "a" } } }] }],
    volumes: [
      { name: "v", secret: { secretName: "vol" } },
      { name: "w", projected: { sources: [{ configMap: { name: "projected" } }, { secret: { name: "projected" } }] } },
      { name: "x", persistentVolumeClaim: { claimName: "claim" } },
      { name: "y", ephemeral: {} },
      { name: "z", csi: { driver: "d", nodePublishSecretRef: { name: "csi" } } },
      { name: "iscsi", iscsi: { secretRef: { name: "iscsi" } } },
      { name: "azure", azureFile: { secretName: "azure" } },
    ],
  };
  const found = podReferences({ metadata, spec } as never);
  const wanted = [
    ["serviceaccounts", "robot"],
    ["secrets", "pull"],
    ["secrets", "pull-too"],
    ["secrets", "projected"],
    ["secrets", "init"],
    ["configmaps", "init"],
    ["configmaps", "settings"],
    ["secrets", "debug"],
    ["secrets", "vol"],
    ["secrets", "csi"],
    ["secrets", "iscsi"],
    ["secrets", "azure"],
    ["configmaps", "projected"],
    ["persistentvolumeclaims", "claim"],
    ["persistentvolumeclaims", "p-y"],
  ] as const;
  assert.deepEqual([...found].sort(), wanted.map(([kind, name]) => referenceKey(kind, "web", name)).sort());
  const mirror = { metadata: { ...metadata, annotations: { "kubernetes.io/config.mirror": "x" } }, spec };
  assert.equal(podReferences(mirror as never).size, 0);
  assert.equal(podReferences({ metadata } as never).size, 0, "a pod without a spec");
});

const ofPod = (volume: object) => {
  const pod = { metadata: { name: "p", namespace: "web" }, spec: { volumes: [{ name: "v", ...volume }] } };
  return [...podReferences(pod as never)]; // cast: as a pod is stored
};
const named = { secretRef: { name: "s" } };
for (const [type, source] of Object.entries({
  ...{ secret: { secretName: "s" }, azureFile: { secretName: "s" }, cephfs: named, cinder: named, flexVolume: named },
  ...{ rbd: named, scaleIO: named, iscsi: named, storageos: named, csi: { nodePublishSecretRef: { name: "s" } } },
})) {
  test(`a pod with a ${type} volume refers to its secret, and to none where it names none`, () => {
    assert.deepEqual([ofPod({ [type]: source }), ofPod({ [type]: {} })], [["secrets/web/s"], []]);
  });
}

test("a pod refers to the config maps of its volumes", () => {
  assert.deepEqual(ofPod({ configMap: { name: "c" } }), ["configmaps/web/c"]);
});

for (const [type, source, elsewhere] of [
  ...["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"].map(
    (one) => [one, named, { secretRef: { name: "s", namespace: "vault" } }] as const,
  ),
  ["azureFile", { secretName: "s" }, { secretName: "s", secretNamespace: "vault" }],
] as const) {
  test(`a persistent volume of ${type} refers to its secret where it says, or where its claim is`, () => {
    const of = (spec: object) => volumeSecretReferences({ metadata: {}, spec: { [type]: spec } } as never, "web"); // cast: a volume
    assert.deepEqual([of(source), of(elsewhere), of({})], [["secrets/web/s"], ["secrets/vault/s"], []]);
  });
}

test("a volume's secrets are those for its controller and for both steps on the node, where they say or where its claim is", () => {
  const csi = {
    controllerPublishSecretRef: { name: "attach", namespace: "vault" },
    nodeStageSecretRef: { name: "stage", namespace: "vault" },
    nodePublishSecretRef: { name: "publish" },
  };
  assert.deepEqual(volumeSecretReferences({ metadata: {}, spec: { csi } } as never, "web").toSorted(), [
    "secrets/vault/attach",
    "secrets/vault/stage",
    "secrets/web/publish",
  ]);
});
