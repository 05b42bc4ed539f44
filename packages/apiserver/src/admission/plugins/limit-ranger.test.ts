import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { LimitRangeItem, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { startTestServer, type TestServer } from "../../testing/start-test-server.ts";
import type { PluginContext } from "../plugin-context.ts";
import { limitRanger, podProblems } from "./limit-ranger.ts";

let server: TestServer;
before(async () => {
  server = await startTestServer(undefined, ["--disable-admission-plugins=ServiceAccount"]);
});
after(() => server.stop());

const inNamespace = (namespace: string, resource: string): string => `/api/v1/namespaces/${namespace}/${resource}`;
async function limits(namespace: string, ...items: object[]): Promise<void> {
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
  const range = { metadata: { name: "limits" }, spec: { limits: items } };
  const { code, text } = await server.request("POST", inNamespace(namespace, "limitranges"), range);
  assert.equal(code, 201, text);
}
const aPod = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "i" }], ...spec },
});

test("containers get default requests and limits from the first pod on, and an annotation lists them", async () => {
  await limits("filled", {
    type: "Container",
    default: { cpu: "1", memory: "1Gi" },
    defaultRequest: { cpu: "500m" },
    max: { cpu: "2" },
  });
  const spec = {
    initContainers: [{ name: "i", image: "i", resources: { limits: { cpu: "1500m" }, requests: { cpu: "1" } } }],
  };
  const { code, body, text } = await server.request("POST", inNamespace("filled", "pods"), aPod("p", spec));
  assert.equal(code, 201, text);
  assert.deepEqual(body.spec.containers[0].resources, {
    limits: { cpu: "1", memory: "1Gi" },
    requests: { cpu: "500m", memory: "1Gi" },
  });
  assert.deepEqual(body.spec.initContainers[0].resources, {
    limits: { cpu: "1500m", memory: "1Gi" },
    requests: { cpu: "1", memory: "1Gi" },
  });
  assert.equal(
    body.metadata.annotations["kubernetes.io/limit-ranger"],
    "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; " +
      "memory request for init container i; memory limit for init container i",
  );
  const dry = await server.request("POST", `${inNamespace("filled", "pods")}?dryRun=All`, aPod("q"));
  assert.equal(dry.body.spec.containers[0].resources.limits.cpu, "1");
});

test("pods and claims keep within the bounds, on creation and when a claim grows", async () => {
  await limits(
    "bounded",
    { type: "Container", max: { cpu: "1" }, min: { cpu: "100m" } },
    { type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "5Gi" } },
  );
  const resources = { limits: { cpu: "2" }, requests: { cpu: "50m" } };
  const { code, body } = await server.request(
    "POST",
    inNamespace("bounded", "pods"),
    aPod("p", { containers: [{ name: "c", image: "i", resources }] }),
  );
  assert.equal(code, 403);
  assert.equal(
    body.message,
    'pods "p" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, maximum cpu usage per Container is 1, but limit is 2]',
  );
  const claim = (storage: string): object => ({
    metadata: { name: "c" },
    spec: { storageClassName: "", accessModes: ["ReadWriteOnce"], resources: { requests: { storage } } },
  });
  const post = (storage: string) => server.request("POST", inNamespace("bounded", "persistentvolumeclaims"), claim(storage));
  assert.equal(
    (await post("6Gi")).body.message,
    'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi',
  );
  assert.match((await post("1Mi")).body.message, /minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi/);
  assert.equal((await post("2Gi")).code, 201);
});

const asking = (list: object): object => ({ name: "c", resources: { requests: list, limits: list } });
const requests = (cpu: string): object => asking({ cpu });
const memory = (text: string): object => asking({ memory: text });
for (const { name, containers, initContainers = [], limit, want } of [
  {
    name: "is held to the sum of its containers",
    containers: [requests("1"), requests("2")],
    limit: { max: { cpu: "2" } },
    want: ["maximum cpu usage per Pod is 2, but limit is 3"],
  },
  {
    name: "is held to all its containers, shown in plain bytes",
    containers: [memory("1Gi"), memory("1536Mi")],
    limit: { max: { memory: "2Gi" } },
    want: ["maximum memory usage per Pod is 2Gi, but limit is 2684354560"],
  },
  {
    name: "is held to its greatest init container, shown as it is written",
    containers: [memory("1Gi")],
    initContainers: [memory("3Gi")],
    limit: { max: { memory: "2Gi" } },
    want: ["maximum memory usage per Pod is 2Gi, but limit is 3Gi"],
  },
  {
    name: "is held to its greatest init container",
    containers: [requests("1")],
    initContainers: [requests("3")],
    limit: { max: { cpu: "2" } },
    want: ["maximum cpu usage per Pod is 2, but limit is 3"],
  },
  {
    name: "is held to an init container that alone asks for something",
    containers: [{ name: "c" }],
    initContainers: [requests("3")],
    limit: { max: { cpu: "2" } },
    want: ["maximum cpu usage per Pod is 2, but limit is 3"],
  },
  {
    name: "with a container without a limit is refused by a maximum",
    containers: [requests("1"), { name: "d" }],
    limit: { max: { cpu: "2" } },
    want: ["maximum cpu usage per Pod is 2.  No limit is specified"],
  },
  {
    name: "without a request is refused by a minimum",
    containers: [{ name: "c" }],
    limit: { min: { cpu: "1" } },
    want: ["minimum cpu usage per Pod is 1.  No request is specified"],
  },
  {
    name: "with the largest allowed ratio is accepted",
    containers: [{ name: "c", resources: { requests: { cpu: "1" }, limits: { cpu: "3" } } }],
    limit: { maxLimitRequestRatio: { cpu: "3" } },
    want: [],
  },
  {
    name: "without a ratio is refused",
    containers: [{ name: "c", resources: { requests: { cpu: "0", memory: "1" }, limits: { cpu: "3", memory: "0" } } }],
    limit: { maxLimitRequestRatio: { memory: "2", cpu: "2" } },
    want: [
      "cpu max limit to request ratio per Pod is 2, but no request is specified or request is 0",
      "memory max limit to request ratio per Pod is 2, but no limit is specified or limit is 0",
    ],
  },
  {
    name: "with exactly the minimum and maximum is accepted",
    containers: [requests("1")],
    limit: { min: { cpu: "1" }, max: { cpu: "1" } },
    want: [],
  },
  {
    name: "with a limit below the minimum is refused",
    containers: [{ name: "c", resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } }],
    limit: { min: { cpu: "2" } },
    want: ["minimum cpu usage per Pod is 2, but limit is 1"],
  },
  {
    name: "with a request above the maximum is refused",
    containers: [{ name: "c", resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } }],
    limit: { max: { cpu: "1" } },
    want: ["maximum cpu usage per Pod is 1, but request is 2"],
  },
  {
    name: "with a larger ratio is refused",
    containers: [{ name: "c", resources: { requests: { cpu: "1" }, limits: { cpu: "3" } } }],
    limit: { maxLimitRequestRatio: { cpu: "2" } },
    want: ["cpu max limit to request ratio per Pod is 2, but provided ratio is 3.000000"],
  },
]) {
  test(`a pod ${name}`, () => {
    const pod = { spec: { containers, initContainers } } as unknown as Pod;
    assert.deepEqual(podProblems(pod, [{ type: "Pod", ...limit }]), want);
  });
}

test("each container is held to the bounds, the second and the init container's too", () => {
  const pod = { spec: { containers: [requests("1"), requests("3")], initContainers: [requests("4")] } } as unknown as Pod;
  const range = { type: "Container", max: { cpu: "2" } } as LimitRangeItem;
  const text = "maximum cpu usage per Container is 2, but limit is";
  assert.deepEqual(podProblems(pod, [{ type: "Other", max: { cpu: "0" } }, range]), [`${text} 3`, `${text} 4`]);
});

test("a violation of two containers is named once, violations of two ranges are those of the first", async () => {
  const range = (name: string, max: object) => ({ metadata: { name }, spec: { limits: [{ type: "Container", max }] } });
  const cached = [range("cpu", { cpu: "1" }), range("memory", { memory: "1Gi" })];
  const informers = { for: () => ({ synced: true, lister: { inNamespace: () => cached } }) };
  const object = { metadata: {}, spec: { containers: [asking({ cpu: "2" }), asking({ cpu: "2" })] } };
  const attributes = {
    operation: "CREATE",
    namespace: "web",
    name: "p",
    subresource: "",
    resource: { group: "", resource: "pods" },
  };
  await assert.rejects(
    async () => limitRanger({ informers } as unknown as PluginContext).validate?.({ ...attributes, object } as never),
    { message: 'pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2' },
  );
});

test("defaults apply to containers; a container with all values is not changed", async () => {
  await limits(
    "several",
    { type: "Pod", max: { cpu: "20" } },
    { type: "Container", default: { cpu: "2" }, defaultRequest: { cpu: "1" } },
  );
  const own = { name: "own", image: "i", resources: { limits: { cpu: "3" }, requests: { cpu: "3" } } };
  const whole = await server.request("POST", inNamespace("several", "pods"), aPod("whole", { containers: [own] }));
  assert.equal(whole.body.metadata.annotations, undefined, whole.text);
  const { body, text } = await server.request(
    "POST",
    inNamespace("several", "pods"),
    aPod("p", { containers: [own, { name: "c", image: "i" }] }),
  );
  assert.deepEqual(body.spec.containers[1].resources, { limits: { cpu: "2" }, requests: { cpu: "1" } }, text);
  assert.equal(
    body.metadata.annotations["kubernetes.io/limit-ranger"],
    "LimitRanger plugin set: cpu request for container c; cpu limit for container c",
  );
});

test("each range of a namespace fills and checks; what is being deleted may still change", async () => {
  const range = (name: string, ...items: object[]) => ({ metadata: { name, namespace: "web" }, spec: { limits: items } });
  const cached = [
    range("cpu", { type: "Container", default: { cpu: "2" }, defaultRequest: { cpu: "1" } }),
    range(
      "memory",
      { type: "Container", default: { memory: "2Gi" }, defaultRequest: { memory: "1Gi" }, max: { memory: "3Gi" } },
      { type: "PersistentVolumeClaim", max: { storage: "1Gi" } },
      { type: "PersistentVolumeClaim", min: { storage: "1Mi" } },
    ),
  ];
  const informers = { for: () => ({ synced: true, lister: { inNamespace: () => cached } }) };
  const plugin = limitRanger({ informers } as unknown as PluginContext);
  const request = (operation: string, resource: string, object: object, oldObject?: object) =>
    ({ operation, namespace: "web", name: "p", subresource: "", resource: { group: "", resource }, object, oldObject }) as never;
  const metadata: KubeObject["metadata"] = { name: "p", annotations: { own: "kept" } };
  const pod = { metadata, spec: { containers: [{ name: "c", resources: {} }] } };
  await plugin.admit?.(request("CREATE", "pods", pod));
  assert.deepEqual(Object.keys(metadata.annotations ?? {}), ["own", "kubernetes.io/limit-ranger"]);
  const filled = { limits: { cpu: "2", memory: "2Gi" }, requests: { cpu: "1", memory: "1Gi" } };
  assert.deepEqual(pod.spec.containers[0]?.resources, filled);
  const greedy = { metadata: {}, spec: { containers: [{ name: "c", resources: { limits: { memory: "4Gi" } } }] } };
  await assert.rejects(
    async () => plugin.validate?.(request("CREATE", "pods", greedy)),
    /maximum memory usage per Container is 3Gi/,
  );
  const claim = (metadata: object, storage: string) => ({ metadata, spec: { resources: { requests: { storage } } } });
  const update = async (metadata: object, storage = "2Gi") =>
    plugin.validate?.(request("UPDATE", "persistentvolumeclaims", claim(metadata, storage), claim(metadata, storage)));
  await assert.rejects(update({}), /maximum storage usage per PersistentVolumeClaim is 1Gi/);
  await assert.rejects(update({}, "1Ki"), /minimum storage usage per PersistentVolumeClaim is 1Mi/);
  await update({ deletionTimestamp: "2026-01-01T00:00:00Z" });
  const silent = request("CREATE", "persistentvolumeclaims", { metadata: {}, spec: { resources: {} } });
  await assert.rejects(async () => plugin.validate?.(silent), {
    message:
      'persistentvolumeclaims "p" is forbidden: [maximum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified, ' +
      "minimum storage usage per PersistentVolumeClaim is 1Mi.  No request is specified]",
  });
});
