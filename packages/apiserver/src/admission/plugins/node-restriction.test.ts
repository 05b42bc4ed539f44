/** NodeRestriction: all rejections with upstream's texts, on a real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer, type TestServer } from "../../testing/start-test-server.ts";

const merge = { "content-type": "application/merge-patch+json" };
const mirror = { "kubernetes.io/config.mirror": "x" };
const pods = "/api/v1/namespaces/default/pods";
const claims = "/api/v1/namespaces/default/persistentvolumeclaims";
const leases = (namespace: string): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const csiNodes = "/apis/storage.k8s.io/v1/csinodes";
const token = "/api/v1/namespaces/default/serviceaccounts/default/token";

let server: TestServer;
let n1: ReturnType<typeof newHttp>;
/** UIDs of the kubelet's node and of a pod on another node. */
let uid: { node: string; theirs: string };

before(async () => {
  server = await startTestServer(undefined, [
    // AlwaysAllow, so that only the plugin rejects.
    "--authorization-mode=AlwaysAllow",
    "--enable-admission-plugins=NodeRestriction",
    "--disable-admission-plugins=ServiceAccount",
    "--feature-gates=EphemeralContainers=true",
  ]);
  n1 = newHttp(server.url, server.ca, await server.clientCertificate("system:node:n1", ["system:nodes"]));
  const make = async (path: string, object: object): Promise<string> => {
    const { code, body, text } = await server.request("POST", path, object);
    assert.equal(code, 201, text);
    return body.metadata.uid;
  };
  const onNode = (name: string, nodeName?: string) => make(pods, aPod(name, {}, nodeName === undefined ? {} : { nodeName }));
  const node = await make("/api/v1/nodes", { metadata: { name: "n1", labels: { "node-restriction.kubernetes.io/pool": "a" } } });
  await make("/api/v1/nodes", { metadata: { name: "n2" } });
  uid = { node, theirs: await onNode("theirs", "n2") };
  await onNode("mine", "n1");
  await onNode("free");
  await make("/api/v1/namespaces", { metadata: { name: "kube-node-lease" } }).catch(() => "is there");
  await make("/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  await make(leases("kube-node-lease"), { metadata: { name: "n2" } });
  await make(leases("default"), { metadata: { name: "n1" } });
  await make(csiNodes, { metadata: { name: "n2" }, spec: { drivers: [] } });
  const resources = { requests: { storage: "1Gi" } };
  await make(claims, { metadata: { name: "c" }, spec: { storageClassName: "", accessModes: ["ReadWriteOnce"], resources } });
  await waitFor(async () => (await n1.request("POST", `${pods}?dryRun=All`, mirrorPod())).code === 201);
});
after(async () => {
  n1.close();
  await server.stop();
});

const aPod = (name: string, metadata: object, spec: object = {}): object => ({
  metadata: { name, ...metadata },
  spec: { containers: [{ name: "c", image: "i" }], ...spec },
});
const owner = (changes: object = {}): object => ({
  apiVersion: "v1",
  kind: "Node",
  name: "n1",
  uid: uid.node,
  controller: true,
  ...changes,
});
const mirrorPod = (spec: object = {}, owners: object[] = [owner()]): object =>
  aPod("m", { annotations: mirror, ownerReferences: owners }, { nodeName: "n1", ...spec });
const bound = (ref: object): object => ({ spec: { boundObjectRef: { apiVersion: "v1", kind: "Pod", ...ref } } });
const eviction = (name: string): object => ({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name } });
const stranger = { apiVersion: "v1", kind: "Pod", name: "x", uid: "1" };
const volume = (source: object): object => ({ name: Object.keys(source)[0], ...source });
const secret = volume({ secret: { secretName: "s" } });
const configMap = volume({ configMap: { name: "s" } });
const claim = volume({ persistentVolumeClaim: { claimName: "s" } });

interface Attempt {
  readonly what: string;
  readonly call: readonly [method: string, path: string, body?: () => object];
  /** Expected end of the message. */
  readonly want: string;
  readonly code?: number;
}

const refused: readonly Attempt[] = [
  {
    what: "makes another node",
    call: ["POST", "/api/v1/nodes", () => ({ metadata: { name: "n3" } })],
    want: 'nodes "n3" is forbidden: node "n1" is not allowed to modify node "n3"',
  },
  {
    what: "lets the server choose its node's name",
    call: ["POST", "/api/v1/nodes", () => ({ metadata: { generateName: "n1" } })],
    want: 'nodes "n1" is forbidden: node "n1" is not allowed to modify node ""',
  },
  {
    what: "removes its taints",
    call: ["PATCH", "/api/v1/nodes/n1", () => ({ spec: { taints: [] } })],
    want: 'node "n1" is not allowed to modify taints',
  },
  {
    what: "labels itself with what is the administrator's",
    call: ["PATCH", "/api/v1/nodes/n1", () => ({ metadata: { labels: { "x.k8s.io/a": "b", "kubernetes.io/os": "linux" } } })],
    want: 'nodes "n1" is forbidden: is not allowed to modify labels: x.k8s.io/a',
  },
  {
    what: "gives its node an owner",
    call: ["PATCH", "/api/v1/nodes/n1", () => ({ metadata: { ownerReferences: [stranger] } })],
    want: 'node "n1" is not allowed to modify ownerReferences',
  },
  {
    what: "makes a pod that is no mirror",
    call: ["POST", pods, () => aPod("p", {}, { nodeName: "n1" })],
    want: 'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
  },
  {
    what: "makes a mirror pod of nowhere",
    call: ["POST", pods, () => mirrorPod({ nodeName: "" })],
    want: 'node "n1" can only create pods with spec.nodeName set to itself',
  },
  {
    what: "creates a mirror pod without an owner",
    call: ["POST", pods, () => mirrorPod({}, [])],
    want: 'node "n1" can only create pods with an owner reference set to itself',
  },
  {
    what: "makes a mirror pod of two",
    call: ["POST", pods, () => mirrorPod({}, [owner(), stranger])],
    want: 'node "n1" can only create pods with a single owner reference set to itself',
  },
  {
    what: "makes a mirror pod of a pod",
    call: ["POST", pods, () => mirrorPod({}, [owner({ kind: "Pod" })])],
    want: 'node "n1" can only create pods with an owner reference set to itself',
  },
  {
    what: "does not control its mirror pod",
    call: ["POST", pods, () => mirrorPod({}, [owner({ controller: undefined })])],
    want: 'node "n1" can only create pods with a controller owner reference set to itself',
  },
  {
    what: "has itself kept by its mirror pod",
    call: ["POST", pods, () => mirrorPod({}, [owner({ blockOwnerDeletion: true })])],
    want: 'node "n1" must not set blockOwnerDeletion on an owner reference',
  },
  {
    what: "makes a mirror pod of an earlier node of its name",
    call: ["POST", pods, () => mirrorPod({}, [owner({ uid: "old" })])],
    want: "UID mismatch: expected old got ",
  },
  {
    what: "makes a mirror pod whose owner has no uid",
    call: ["POST", pods, () => mirrorPod({}, [owner({ uid: "" })])],
    want: "UID mismatch: expected  got ",
  },
  {
    what: "gives a mirror pod an account",
    call: ["POST", pods, () => mirrorPod({ serviceAccountName: "default" })],
    want: 'node "n1" can not create pods that reference a service account',
  },
  {
    what: "gives a mirror pod all sorts of volumes",
    call: ["POST", pods, () => mirrorPod({ volumes: [claim, configMap, secret] })],
    want: 'node "n1" can not create pods that reference secrets',
  },
  {
    what: "gives a mirror pod a config map",
    call: ["POST", pods, () => mirrorPod({ volumes: [claim, configMap] })],
    want: 'node "n1" can not create pods that reference configmaps',
  },
  {
    what: "gives a mirror pod a claim",
    call: ["POST", pods, () => mirrorPod({ volumes: [claim] })],
    want: 'node "n1" can not create pods that reference persistentvolumeclaims',
  },
  {
    what: "changes its pod",
    call: ["PATCH", `${pods}/mine`, () => ({ metadata: { labels: { a: "b" } } })],
    want: 'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods',
  },
  {
    what: "labels its pod by way of the status",
    call: ["PATCH", `${pods}/mine/status`, () => ({ metadata: { labels: { a: "b" } } })],
    want: 'node "n1" cannot update labels through pod status',
  },
  {
    what: "reports of another node's pod",
    call: ["PATCH", `${pods}/theirs/status`, () => ({ status: { message: "x" } })],
    want: 'node "n1" can only update pod status for pods with spec.nodeName set to itself',
  },
  {
    what: "reports of another node's pod, which it says is its own",
    call: ["PATCH", `${pods}/theirs/status`, () => ({ spec: { nodeName: "n1" }, status: { message: "x" } })],
    want: 'node "n1" can only update pod status for pods with spec.nodeName set to itself',
  },
  {
    what: "adds a container to its pod",
    call: ["PATCH", `${pods}/mine/ephemeralcontainers`, () => ({})],
    want: `unexpected pod subresource "ephemeralcontainers", only 'status' and 'eviction' are allowed`,
  },
  {
    what: "takes a pod",
    call: ["POST", `${pods}/free/binding`, () => ({ metadata: { name: "free" }, target: { kind: "Node", name: "n1" } })],
    want: `unexpected pod subresource "binding", only 'status' and 'eviction' are allowed`,
  },
  {
    what: "deletes another node's pod",
    call: ["DELETE", `${pods}/theirs`],
    want: 'node "n1" can only delete pods with spec.nodeName set to itself',
  },
  {
    what: "evicts another node's pod",
    call: ["POST", `${pods}/theirs/eviction`, () => eviction("theirs")],
    want: 'pods "theirs" is forbidden: node n1 can only evict pods with spec.nodeName set to itself',
  },
  {
    what: "evicts a pod that is not there",
    call: ["POST", `${pods}/gone/eviction`, () => eviction("gone")],
    want: 'pod "gone" not found',
    code: 404,
  },
  { what: "makes a claim", call: ["POST", claims, () => ({ metadata: { name: "c2" } })], want: "may only update PVC status" },
  { what: "deletes a claim", call: ["DELETE", `${claims}/c`], want: "may only update PVC status" },
  {
    what: "reports a claim as bound",
    call: ["PATCH", `${claims}/c/status`, () => ({ status: { phase: "Bound" } })],
    want: 'node "n1" is not allowed to update fields other than status.capacity and status.conditions',
  },
  {
    what: "makes a lease elsewhere",
    call: ["POST", leases("default"), () => ({ metadata: { name: "n1" } })],
    want: 'can only access leases in the "kube-node-lease" system namespace',
  },
  {
    what: "makes another node's lease",
    call: ["POST", leases("kube-node-lease"), () => ({ metadata: { name: "n2" } })],
    want: "can only access node lease with the same name as the requesting node",
  },
  {
    what: "reports another node's drivers",
    call: ["POST", csiNodes, () => ({ metadata: { name: "n2" }, spec: { drivers: [] } })],
    want: "can only access CSINode with the same name as the requesting node",
  },
  {
    what: "asks for a token of no pod",
    call: ["POST", token, () => ({ spec: {} })],
    want: "node requested token not bound to a pod",
  },
  {
    what: "asks for a token of a secret",
    call: ["POST", token, () => bound({ kind: "Secret", name: "s", uid: "1" })],
    want: "node requested token not bound to a pod",
  },
  {
    what: "asks for a token of whatever pod has a name",
    call: ["POST", token, () => bound({ name: "mine" })],
    want: "node requested token with a pod binding without a uid",
  },
  {
    what: "asks for a token of a pod with an empty uid",
    call: ["POST", token, () => bound({ name: "mine", uid: "" })],
    want: "node requested token with a pod binding without a uid",
  },
  {
    what: "asks for a token of an earlier pod",
    call: ["POST", token, () => bound({ name: "mine", uid: "old" })],
    want: "the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated",
  },
  {
    what: "asks for a token of a pod that is not there",
    call: ["POST", token, () => bound({ name: "gone", uid: "1" })],
    want: 'pod "gone" not found',
    code: 404,
  },
  {
    what: "asks for a token of another node's pod",
    call: ["POST", token, () => bound({ name: "theirs", uid: uid.theirs })],
    want: "node requested token bound to a pod scheduled on a different node",
  },
  {
    what: "changes another node",
    call: ["PATCH", "/api/v1/nodes/n2", () => ({ metadata: { labels: { "kubernetes.io/os": "linux" } } })],
    want: 'node "n1" is not allowed to modify node "n2"',
  },
  {
    what: "reports of another node",
    call: ["PATCH", "/api/v1/nodes/n2/status", () => ({ status: { phase: "Running" } })],
    want: 'node "n1" is not allowed to modify node "n2"',
  },
  {
    what: "deletes another node",
    call: ["DELETE", "/api/v1/nodes/n2"],
    want: 'node "n1" is not allowed to modify node "n2"',
  },
  {
    what: "labels itself by way of the status",
    call: ["PATCH", "/api/v1/nodes/n1/status", () => ({ metadata: { labels: { "node-restriction.kubernetes.io/a": "b" } } })],
    want: "is not allowed to modify labels: node-restriction.kubernetes.io/a",
  },
  {
    what: "sets two labels that are the administrator's, after one of the node's",
    call: [
      "PATCH",
      "/api/v1/nodes/n1",
      () => ({
        metadata: {
          labels: { "kubelet.kubernetes.io/a": "b", "x.node-restriction.kubernetes.io/b": "c", "kubernetes.io/a": "b" },
        },
      }),
    ],
    want: "is not allowed to modify labels: kubernetes.io/a, x.node-restriction.kubernetes.io/b",
  },
  {
    what: "takes a label of the administrator's away",
    call: ["PATCH", "/api/v1/nodes/n1", () => ({ metadata: { labels: { "node-restriction.kubernetes.io/pool": null } } })],
    want: "is not allowed to modify labels: node-restriction.kubernetes.io/pool",
  },
  {
    what: "sets what it is configured by",
    call: [
      "PATCH",
      "/api/v1/nodes/n1",
      () => ({ spec: { configSource: { configMap: { namespace: "a", name: "b", kubeletConfigKey: "c" } } } }),
    ],
    want: 'node "n1" is not allowed to update configSource to a new non-nil configSource',
  },
  {
    what: "makes its node with what it is configured by",
    call: [
      "POST",
      "/api/v1/nodes",
      () => ({
        metadata: { name: "n1" },
        spec: { configSource: { configMap: { namespace: "a", name: "b", kubeletConfigKey: "c" } } },
      }),
    ],
    want: 'node "n1" is not allowed to create pods with a non-nil configSource',
  },
  {
    what: "makes a mirror pod of another node's",
    call: ["POST", pods, () => mirrorPod({}, [owner({ name: "n2" })])],
    want: 'node "n1" can only create pods with an owner reference set to itself',
  },
  {
    what: "makes a mirror pod of a node of another version",
    call: ["POST", pods, () => mirrorPod({}, [owner({ apiVersion: "v2" })])],
    want: 'node "n1" can only create pods with an owner reference set to itself',
  },
  {
    what: "makes a mirror pod on another node",
    call: ["POST", pods, () => mirrorPod({ nodeName: "n2" })],
    want: 'node "n1" can only create pods with spec.nodeName set to itself',
  },
  {
    what: "gives the second container of a mirror pod a secret",
    call: [
      "POST",
      pods,
      () =>
        mirrorPod({
          containers: [
            { name: "c", image: "i" },
            { name: "d", image: "i", envFrom: [{ secretRef: { name: "s" } }] },
          ],
        }),
    ],
    want: 'node "n1" can not create pods that reference secrets',
  },
  {
    what: "gives a mirror pod a secret in the second source of a projection",
    call: [
      "POST",
      pods,
      () =>
        mirrorPod({
          volumes: [{ name: "p", projected: { sources: [{ downwardAPI: {} }, { secret: { name: "s" } }] } }],
        }),
    ],
    want: 'node "n1" can not create pods that reference secrets',
  },
  {
    what: "deletes a pod that is on no node",
    call: ["DELETE", `${pods}/free`],
    want: 'node "n1" can only delete pods with spec.nodeName set to itself',
  },
  {
    what: "deletes another node's pod as a dry run",
    call: ["DELETE", `${pods}/theirs?dryRun=All`],
    want: 'node "n1" can only delete pods with spec.nodeName set to itself',
  },
  {
    what: "deletes the pods of all nodes",
    call: ["DELETE", `${pods}?fieldSelector=metadata.name%3Dtheirs`],
    want: 'node "n1" can only delete pods with spec.nodeName set to itself',
  },
  {
    what: "labels a claim by way of the status",
    call: ["PATCH", `${claims}/c/status`, () => ({ metadata: { labels: { a: "b" } }, status: { capacity: { storage: "1Gi" } } })],
    want: 'node "n1" is not allowed to update fields other than status.capacity and status.conditions',
  },
  {
    what: "renews another node's lease",
    call: ["PATCH", `${leases("kube-node-lease")}/n2`, () => ({ spec: { holderIdentity: "n1" } })],
    want: "can only access node lease with the same name as the requesting node",
  },
  {
    what: "deletes another node's lease",
    call: ["DELETE", `${leases("kube-node-lease")}/n2`],
    want: "can only access node lease with the same name as the requesting node",
  },
  {
    what: "changes another node's drivers",
    call: ["PATCH", `${csiNodes}/n2`, () => ({ metadata: { labels: { a: "b" } } })],
    want: "can only access CSINode with the same name as the requesting node",
  },
  {
    what: "deletes another node's drivers",
    call: ["DELETE", `${csiNodes}/n2`],
    want: "can only access CSINode with the same name as the requesting node",
  },
  {
    what: "renews a lease of its name elsewhere",
    call: ["PATCH", `${leases("default")}/n1`, () => ({ spec: { holderIdentity: "n1" } })],
    want: 'can only access leases in the "kube-node-lease" system namespace',
  },
  {
    what: "asks for a token of a pod of another version",
    call: ["POST", token, () => bound({ apiVersion: "v2", name: "mine", uid: "1" })],
    want: "node requested token not bound to a pod",
  },
];

for (const { what, call, want, code = 403 } of refused) {
  test(`is refused: a node agent that ${what}`, async () => {
    const [method, path, body] = call;
    const answer = await n1.request(method, path, body?.(), method === "PATCH" ? merge : {});
    assert.equal(answer.code, code, answer.text);
    const message = String(answer.body.message);
    assert.ok(message.endsWith(want) || message.endsWith(`${want}${uid.node}`), message);
  });
}

test("is refused: a node agent without a node, and a mirror pod of a missing node", async (t) => {
  const as = async (name: string) => {
    const http = newHttp(server.url, server.ca, await server.clientCertificate(`system:node:${name}`, ["system:nodes"]));
    t.after(() => http.close());
    return http;
  };
  const nameless = await (await as("")).request("POST", "/api/v1/nodes", { metadata: { name: "n1" } });
  assert.equal(nameless.body.message, 'nodes "n1" is forbidden: could not determine node from user "system:node:"');
  const mirrored = mirrorPod({ nodeName: "n9" }, [owner({ name: "n9" })]);
  const early = await (await as("n9")).request("POST", pods, mirrored);
  assert.equal(early.code, 404);
  assert.equal(early.body.message, 'node "n9" not found');
});

test("a user with a node's name but without the group system:nodes is not restricted", async (t) => {
  const http = newHttp(server.url, server.ca, await server.clientCertificate("system:node:n1", ["others"]));
  t.after(() => http.close());
  const { code, text } = await http.request("POST", `${pods}?dryRun=All`, aPod("plain", {}));
  assert.equal(code, 201, text);
});

const allowed: readonly Omit<Attempt, "want">[] = [
  {
    what: "reports its zone",
    call: ["PATCH", "/api/v1/nodes/n1", () => ({ metadata: { labels: { "topology.kubernetes.io/zone": "z" } } })],
  },
  {
    what: "sets all labels that are a kubelet's",
    call: [
      "PATCH",
      "/api/v1/nodes/n1",
      () => ({
        metadata: {
          labels: Object.fromEntries(
            [
              ...["kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os"],
              ...["beta.kubernetes.io/instance-type", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"],
              ...["node.kubernetes.io/instance-type", "node.kubernetes.io/any", "x.node.kubernetes.io/any"],
              ...["kubelet.kubernetes.io/any", "x.kubelet.kubernetes.io/any", "any", "example.com/any"],
              ...["notkubernetes.io/any", "notk8s.io/any"],
              ...["failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"],
              ...["topology.kubernetes.io/region", "topology.kubernetes.io/zone"],
            ].map((key) => [key, "own"]),
          ),
        },
      }),
    ],
  },
  {
    what: "reports the progress of a resize",
    call: [
      "PATCH",
      `${claims}/c/status`,
      () => ({
        status: {
          resizeStatus: "NodeExpansionInProgress",
          allocatedResources: { storage: "1Gi" },
          conditions: [{ type: "Resizing", status: "True" }],
        },
      }),
    ],
  },
  { what: "shows a static pod", call: ["POST", pods, () => mirrorPod()], code: 201 },
  { what: "takes its static pod away", call: ["DELETE", `${pods}/m?gracePeriodSeconds=0`] },
  { what: "reports of its pod", call: ["PATCH", `${pods}/mine/status`, () => ({ status: { message: "x" } })] },
  {
    what: "reports how large a claim is",
    call: ["PATCH", `${claims}/c/status`, () => ({ status: { capacity: { storage: "1Gi" } } })],
  },
  { what: "has its lease", call: ["POST", leases("kube-node-lease"), () => ({ metadata: { name: "n1" } })], code: 201 },
  {
    what: "reports its drivers",
    call: ["POST", csiNodes, () => ({ metadata: { name: "n1" }, spec: { drivers: [] } })],
    code: 201,
  },
  { what: "makes room for others", call: ["POST", `${pods}/mine/eviction`, () => eviction("mine")], code: 201 },
];
for (const { what, call, code = 200 } of allowed) {
  test(`may: a node agent that ${what}`, async () => {
    const [method, path, body] = call;
    const answer = await n1.request(method, path, body?.(), method === "PATCH" ? merge : {});
    assert.equal(answer.code, code, answer.text);
  });
}
