import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { staticPod, staticPods } from "./static-pod.ts";

const manifest = (change: object = {}, container: object = {}): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web" },
    spec: { containers: [{ name: "main", image: "i:1", ...container }] },
    ...change,
  });
const origin = {
  source: "file",
  from: "/etc/kubernetes/manifests/web.yaml",
  nodeName: "Node1",
  now: 0,
  turns: new Turns(),
} as const;
const read = (text: string) => staticPod(text, origin);

test("a file's pod has a name of its node, and the same uid for the same contents", async () => {
  const [first, again, other] = await Promise.all([manifest(), manifest(), manifest({}, { image: "i:2" })].map(read));
  assert.deepEqual([first?.metadata.name, first?.metadata.namespace], ["web-node1", "default"]);
  assert.equal(first?.metadata.uid, again?.metadata.uid);
  assert.notEqual(first?.metadata.uid, other?.metadata.uid);
});

const spec = (more: object) => ({ spec: { containers: [{ name: "main", image: "i:1" }], ...more } });
for (const { name, text, want } of [
  { name: "another kind", text: manifest({ kind: "Job" }), want: /v1 Job is not a v1 Pod/ },
  {
    name: "a name that is a path",
    text: manifest({ metadata: { name: "../x" } }),
    want: /metadata\.name: Invalid value: "\.\.\/x"/,
  },
  {
    name: "a namespace that is a path",
    text: manifest({ metadata: { name: "w", namespace: ".." } }),
    want: /metadata\.namespace: Invalid value/,
  },
  {
    name: "a uid that is a path",
    text: manifest({ metadata: { name: "w", uid: "../../etc" } }),
    want: /metadata\.uid: Invalid value/,
  },
  {
    name: "a container that is a path",
    text: manifest({}, { name: "a/../../b" }),
    want: /spec\.containers\[0\]\.name: Invalid value/,
  },
  {
    name: "an image missing in the second container",
    text: manifest(spec({ containers: [{ name: "a", image: "i" }, { name: "b" }] })),
    want: /spec\.containers\[1\]\.image: Required value/,
  },
  {
    name: "an init container that is a path",
    text: manifest(
      spec({
        initContainers: [
          { name: "a", image: "i" },
          { name: "..", image: "i" },
        ],
      }),
    ),
    want: /spec\.initContainers\[1\]\.name: Invalid value/,
  },
  {
    name: "two volumes of one name",
    text: manifest(
      spec({
        volumes: [
          { name: "v", emptyDir: {} },
          { name: "v", emptyDir: {} },
        ],
      }),
    ),
    want: /spec\.volumes\[1\]\.name: Duplicate value: "v"/,
  },
  {
    name: "a volume without a name",
    text: manifest(spec({ volumes: [{ emptyDir: {} }] })),
    want: /spec\.volumes\[0\]\.name: Required value/,
  },
  {
    name: "a second mount that says no path",
    text: manifest({
      spec: {
        volumes: [{ name: "v", emptyDir: {} }],
        containers: [{ name: "main", image: "i", volumeMounts: [{ name: "v", mountPath: "/v" }, { name: "v" }] }],
      },
    }),
    want: /^\w*:? ?invalid pod: spec\.containers\[0\]\.volumeMounts\[1\]\.mountPath: Required value$/,
  },
  { name: "no name", text: manifest({ metadata: {} }), want: /metadata\.name: Required value/ },
  { name: "no container", text: manifest({ spec: {} }), want: /spec\.containers: Required value/ },
  { name: "no image", text: manifest({}, { image: "" }), want: /spec\.containers\[0\]\.image: Required value/ },
  {
    name: "two containers of one name",
    text: manifest(spec({ initContainers: [{ name: "main", image: "i:1" }] })),
    want: /spec\.containers\[0\]\.name: Duplicate value: "main"/,
  },
  {
    name: "a volume that is a path",
    text: manifest(spec({ volumes: [{ name: "../v", emptyDir: {} }] })),
    want: /spec\.volumes\[0\]\.name: Invalid value/,
  },
  {
    name: "a mount of no volume",
    text: manifest({}, { volumeMounts: [{ name: "v", mountPath: "/v" }] }),
    want: /spec\.containers\[0\]\.volumeMounts\[0\]\.name: Not found: "v"/,
  },
  {
    name: "ephemeral containers",
    text: manifest(spec({ ephemeralContainers: [{ name: "debug", image: "i:1" }] })),
    want: /spec\.ephemeralContainers: Forbidden: cannot be set on create/,
  },
]) {
  test(`a manifest with ${name} is refused`, () => assert.rejects(read(text), want));
}

test("a static pod gets the API server's defaults, and keeps fields that it sets", async () => {
  const probe = { httpGet: { port: 80 } };
  const given = {
    hostNetwork: true,
    tolerations: [{ key: "a", operator: "Exists" }],
    initContainers: [{ name: "init", image: "i@sha256:1" }],
    containers: [
      {
        name: "main",
        image: "registry:5000/i",
        resources: { limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1" } },
        ports: [
          { containerPort: 80 },
          { containerPort: 81, hostPort: 8081, protocol: "UDP" },
          { containerPort: 82, hostPort: 0 },
        ],
        livenessProbe: probe,
        readinessProbe: { ...probe, periodSeconds: 3 },
        startupProbe: { httpGet: { path: "/up", scheme: "HTTPS", port: 1 } },
      },
      { name: "second", image: "i:latest", imagePullPolicy: "Never", terminationMessagePolicy: "FallbackToLogsOnError" },
      { name: "third", image: "i:1", resources: { requests: { cpu: "1" } } },
      { name: "fourth", image: "i:latest" },
    ],
  };
  const { spec } = await read(manifest({ spec: given }));
  hasFields(spec, {
    nodeName: "Node1",
    dnsPolicy: "ClusterFirst",
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    enableServiceLinks: true,
    schedulerName: "default-scheduler",
    securityContext: {},
    tolerations: [
      { key: "a", operator: "Exists" },
      { operator: "Exists", effect: "NoExecute" },
    ],
  });
  assert.deepEqual(
    [...(spec.initContainers ?? []), ...spec.containers].map(({ imagePullPolicy }) => imagePullPolicy),
    ["IfNotPresent", "Always", "Never", "IfNotPresent", "Always"],
  );
  const [main, second, third] = spec.containers;
  const times = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
  hasFields(main, {
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    resources: { limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } },
    ports: [
      { containerPort: 80, hostPort: 80, protocol: "TCP" },
      { containerPort: 81, hostPort: 8081, protocol: "UDP" },
      { containerPort: 82, hostPort: 82, protocol: "TCP" },
    ],
    livenessProbe: { ...times, httpGet: { path: "/", scheme: "HTTP", port: 80 } },
    readinessProbe: { ...times, periodSeconds: 3, httpGet: { path: "/", scheme: "HTTP", port: 80 } },
    startupProbe: { ...times, httpGet: { path: "/up", scheme: "HTTPS", port: 1 } },
  });
  assert.equal(second?.terminationMessagePolicy, "FallbackToLogsOnError");
  assert.deepEqual(third?.resources, { requests: { cpu: "1" } });
});

test("a static pod keeps its uid, namespace and node name; without hostNetwork its ports get no host port", async () => {
  const metadata = { name: "web-node1", namespace: "prod", uid: "own", annotations: { a: "b" } };
  const { metadata: made, spec } = await read(manifest({ metadata }, { ports: [{ containerPort: 80 }] }));
  assert.partialDeepStrictEqual(made, metadata);
  assert.equal(made.annotations?.["kubernetes.io/config.hash"], "own");
  assert.deepEqual(spec.containers[0]?.ports, [{ containerPort: 80, protocol: "TCP" }]);
});

test("the name of a pod ends with its node's name once, in lower case; every document and every pod of a list is read", async () => {
  const named = (name: string) => manifest({ metadata: { name } });
  assert.deepEqual(
    (await Promise.all([named("web"), named("web-node1"), named("webnode1")].map(read))).map(({ metadata }) => metadata.name),
    ["web-node1", "web-node1", "webnode1-node1"],
  );
  const list = JSON.stringify({ apiVersion: "v1", kind: "PodList", items: [JSON.parse(named("b")), JSON.parse(named("c"))] });
  const text = `%YAML 1.1\n---\n${[named("a"), list, named("d")].join("\n--- # next\r\n")}`;
  const all = await staticPods(text, { ...origin, source: "http", from: "http://x", nodeName: "n" });
  assert.deepEqual(
    all.map(({ metadata }) => metadata.name),
    ["a-n", "b-n", "c-n", "d-n"],
  );
});

for (const items of [[], null, undefined]) {
  test(`a list of pods with the items ${JSON.stringify(items)} has none`, async () => {
    const text = JSON.stringify({ apiVersion: "v1", kind: "PodList", items });
    assert.deepEqual(await staticPods(text, { ...origin, source: "http", from: "http://x" }), []);
  });
}

test("a list of pods whose items are no list is refused", async () => {
  const text = JSON.stringify({ apiVersion: "v1", kind: "PodList", items: { a: 1 } });
  await assert.rejects(staticPods(text, origin), { message: "invalid pod list: items is not a list" });
});

test("init containers have the defaults of containers, also host ports; a registry's port is no tag", async () => {
  const init = { name: "init", image: "registry:5000/team/i", ports: [{ containerPort: 80 }] };
  const { initContainers } = (await read(manifest(spec({ hostNetwork: true, initContainers: [init] })))).spec;
  hasFields(initContainers, [{ imagePullPolicy: "Always", ports: [{ containerPort: 80, hostPort: 80, protocol: "TCP" }] }]);
});

test("equal manifests of two nodes, files or sources are different pods", async () => {
  const changes = [{}, { from: "/b" }, { nodeName: "m" }, { source: "http" as const }];
  const pods = await Promise.all(changes.map((change) => staticPod(manifest(), { ...origin, ...change })));
  assert.equal(new Set(pods.map(({ metadata }) => metadata.uid)).size, 4);
});

test("a pod's generated uid is the digest of its JSON, also when that is hashed in pieces", async () => {
  const env = Array.from({ length: 5000 }, (_, at) => ({ name: `E${at}`, value: `"${at}` }));
  const annotations = Object.fromEntries(env.map(({ name }) => [name, "ä"]));
  const pod = { ...JSON.parse(manifest({ metadata: { name: "web", annotations } }, { env })) };
  const digest = createHash("md5").update(`host:Node1file:${origin.from}`).update(JSON.stringify(pod)).digest("hex");
  assert.equal((await read(JSON.stringify(pod))).metadata.uid, digest);
});
