import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { defaultPod, defaultPodTemplate, pullPolicyOf } from "./defaults.ts";

function defaulted(spec: object): Pod["spec"] {
  const pod = { metadata: {}, spec } as Pod;
  defaultPod(pod);
  return pod.spec;
}

test("a bare pod gets what every client sees", () => {
  assert.deepEqual(defaulted({ containers: [{ name: "c", image: "busybox" }] }), {
    containers: [
      {
        name: "c",
        image: "busybox",
        imagePullPolicy: "Always",
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
        resources: {},
      },
    ],
    dnsPolicy: "ClusterFirst",
    enableServiceLinks: true,
    restartPolicy: "Always",
    schedulerName: "default-scheduler",
    securityContext: {},
    terminationGracePeriodSeconds: 30,
  });
});

test("a template gets no service links and keeps limits without requests", () => {
  const template = { metadata: {}, spec: { containers: [{ name: "c", image: "x", resources: { limits: { cpu: "1" } } }] } };
  defaultPodTemplate(template);
  assert.equal(Object.hasOwn(template.spec, "enableServiceLinks"), false);
  assert.deepEqual(template.spec.containers[0]?.resources, { limits: { cpu: "1" } });
});

test("a limit without a request counts as the request", () => {
  const spec = defaulted({
    containers: [{ name: "c", image: "x", resources: { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "500m" } } }],
  });
  assert.deepEqual(spec.containers[0]?.resources?.requests, { cpu: "500m", memory: "1Gi" });
});

test("an init container's limit counts as its request, too", () => {
  const spec = defaulted({ containers: [], initContainers: [{ name: "c", image: "x", resources: { limits: { cpu: "1" } } }] });
  assert.deepEqual(spec.initContainers?.[0]?.resources?.requests, { cpu: "1" });
});

test("an explicit zero grace period stays", () => {
  assert.equal(defaulted({ containers: [], terminationGracePeriodSeconds: 0 }).terminationGracePeriodSeconds, 0);
});

test("both names of the service account say the same, the new one first", () => {
  assert.equal(defaulted({ containers: [], serviceAccount: "old" }).serviceAccountName, "old");
  const both = defaulted({ containers: [], serviceAccount: "old", serviceAccountName: "new" });
  assert.deepEqual([both.serviceAccountName, both.serviceAccount], ["new", "new"]);
});

test("on the host network container ports are host ports", () => {
  const container = (containerPort: number) => ({ name: `c${containerPort}`, image: "x", ports: [{ containerPort }] });
  const given = { name: "given", image: "x", ports: [{ containerPort: 82, hostPort: 8082 }] };
  const spec = defaulted({
    hostNetwork: true,
    initContainers: [container(79)],
    containers: [container(80), container(81), given],
  });
  const want = [79, 80, 81].map((port) => ({ containerPort: port, hostPort: port, protocol: "TCP" }));
  assert.deepEqual(
    [...(spec.initContainers ?? []), ...spec.containers].flatMap(({ ports }) => ports),
    [...want, { ...given.ports[0], protocol: "TCP" }],
  );
});

test("probes, handlers and volumes are completed", () => {
  const spec = defaulted({
    containers: [
      {
        name: "c",
        image: "x:1",
        livenessProbe: { httpGet: { port: 80 } },
        lifecycle: { preStop: { httpGet: { port: 80 } } },
        env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
      },
    ],
    volumes: [
      { name: "e" },
      { name: "s", secret: { secretName: "s" } },
      { name: "p", projected: { sources: [{ configMap: { name: "m" } }, { serviceAccountToken: { path: "t" } }] } },
      { name: "h", hostPath: { path: "/x" } },
    ],
  });
  const container = spec.containers[0];
  assert.deepEqual(container?.livenessProbe, {
    httpGet: { port: 80, path: "/", scheme: "HTTP" },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  assert.deepEqual(container?.lifecycle?.preStop?.httpGet, { port: 80, path: "/", scheme: "HTTP" });
  assert.equal(container?.env?.[0]?.valueFrom?.fieldRef?.apiVersion, "v1");
  assert.deepEqual(spec.volumes, [
    { name: "e", emptyDir: {} },
    { name: "s", secret: { secretName: "s", defaultMode: 420 } },
    {
      name: "p",
      projected: {
        sources: [{ configMap: { name: "m" } }, { serviceAccountToken: { path: "t", expirationSeconds: 3600 } }],
        defaultMode: 420,
      },
    },
    { name: "h", hostPath: { path: "/x", type: "" } },
  ]);
});

test("containers of every kind are completed, numbers of probes that are 0 too, and both hooks", () => {
  const probe = { timeoutSeconds: 0, periodSeconds: 0, successThreshold: 0, failureThreshold: 0 };
  const completed = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
  const http = { path: "/", scheme: "HTTP", port: 80 };
  const container = {
    ...{ name: "c", image: "x:1", imagePullPolicy: "", ports: [{ containerPort: 80, protocol: "" }] },
    livenessProbe: { ...probe, grpc: { port: 1 } },
    readinessProbe: { ...probe, httpGet: { port: 80, path: "", scheme: "" } },
    startupProbe: { ...probe, tcpSocket: { port: 1 } },
    lifecycle: { postStart: { httpGet: { port: 80 } }, preStop: { httpGet: { port: 80 } } },
  };
  const spec = defaulted({
    containers: [structuredClone(container)],
    initContainers: [structuredClone(container)],
    ephemeralContainers: [structuredClone(container)],
  });
  const want = {
    ...{ name: "c", image: "x:1", imagePullPolicy: "IfNotPresent", ports: [{ containerPort: 80, protocol: "TCP" }] },
    livenessProbe: { ...completed, grpc: { port: 1, service: "" } },
    readinessProbe: { ...completed, httpGet: http },
    startupProbe: { ...completed, tcpSocket: { port: 1 } },
    lifecycle: { postStart: { httpGet: http }, preStop: { httpGet: http } },
    ...{ terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File", resources: {} },
  };
  assert.deepEqual([...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])], [want, want, want]);
});

test("empty names and policies are those that are not set", () => {
  const empty = { dnsPolicy: "", restartPolicy: "", schedulerName: "", serviceAccountName: "", serviceAccount: "" };
  const { dnsPolicy, restartPolicy, schedulerName, ...rest } = defaulted({ ...empty, containers: [] });
  assert.deepEqual([dnsPolicy, restartPolicy, schedulerName], ["ClusterFirst", "Always", "default-scheduler"]);
  assert.deepEqual([rest.serviceAccountName, rest.serviceAccount], ["", ""]);
  const [container] = defaulted({
    containers: [{ name: "c", image: "x:1", terminationMessagePath: "", terminationMessagePolicy: "" }],
  }).containers;
  assert.deepEqual([container?.terminationMessagePath, container?.terminationMessagePolicy], ["/dev/termination-log", "File"]);
});

test("what is set is kept: false, 0, and a host port of its own", () => {
  const spec = defaulted({
    ...{ enableServiceLinks: false, hostNetwork: true, dnsPolicy: "Default", restartPolicy: "Never", schedulerName: "own" },
    containers: [{ name: "c", image: "x", ports: [{ containerPort: 80, hostPort: 8080 }, { hostPort: 81 }] }],
    ephemeralContainers: [{ name: "d", image: "x", ports: [{ containerPort: 80 }] }],
    volumes: [
      { name: "v", projected: { defaultMode: 0, sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 0 } }] } },
    ],
  });
  assert.deepEqual(
    [spec.enableServiceLinks, spec.dnsPolicy, spec.restartPolicy, spec.schedulerName],
    [false, "Default", "Never", "own"],
  );
  assert.deepEqual(spec.containers[0]?.ports, [
    { containerPort: 80, hostPort: 8080, protocol: "TCP" },
    { hostPort: 81, protocol: "TCP" },
  ]);
  assert.deepEqual(spec.ephemeralContainers?.[0]?.ports, [{ containerPort: 80, protocol: "TCP" }]);
  assert.deepEqual(spec.volumes?.[0]?.projected, {
    defaultMode: 0,
    sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 0 } }],
  });
});

test("amounts finer than thousandths are rounded up, of limits, requests and the overhead", () => {
  const resources = () => ({ limits: { cpu: "1500u", memory: "1n" }, requests: { cpu: "1u", memory: "0.5" } });
  const spec = defaulted({
    containers: [{ name: "c", image: "x", resources: resources() }],
    initContainers: [{ name: "d", image: "x", resources: resources() }],
    overhead: { cpu: "100n", memory: "1e3" },
  });
  const rounded = { limits: { cpu: "2m", memory: "1m" }, requests: { cpu: "1m", memory: "0.5" } };
  assert.deepEqual([spec.containers[0]?.resources, spec.initContainers?.[0]?.resources], [rounded, rounded]);
  assert.deepEqual(spec.overhead, { cpu: "1m", memory: "1e3" });
});

test("volume sources get their own defaults, those of value fields where they are empty, too", () => {
  const field = (apiVersion?: string) => ({
    path: "a",
    fieldRef: { fieldPath: "metadata.name", ...(apiVersion && { apiVersion }) },
  });
  const spec = defaulted({
    containers: [],
    volumes: [
      { name: "a", downwardAPI: { items: [field(), { path: "b", resourceFieldRef: { resource: "limits.cpu" } }] } },
      { name: "b", projected: { sources: [{ downwardAPI: { items: [field(), field("v2")] } }] } },
      { name: "c", configMap: { name: "m" } },
      { name: "d", rbd: { monitors: [], image: "i", pool: "", user: "", keyring: "" } },
      { name: "e", iscsi: { targetPortal: "p", iqn: "i", lun: 0, iscsiInterface: "" } },
      { name: "f", scaleIO: { gateway: "g", system: "s", secretRef: {}, storageMode: "", fsType: "" } },
      { name: "g", azureDisk: { diskName: "d", diskURI: "u", readOnly: true, fsType: "" } },
      { name: "h", ephemeral: { volumeClaimTemplate: { spec: {} } } },
      { name: "i", hostPath: { path: "/x", type: "File" } },
      { name: "j", secret: null, emptyDir: undefined },
    ],
  });
  assert.deepEqual(spec.volumes, [
    {
      name: "a",
      downwardAPI: { defaultMode: 420, items: [field("v1"), { path: "b", resourceFieldRef: { resource: "limits.cpu" } }] },
    },
    { name: "b", projected: { defaultMode: 420, sources: [{ downwardAPI: { items: [field("v1"), field("v2")] } }] } },
    { name: "c", configMap: { name: "m", defaultMode: 420 } },
    { name: "d", rbd: { monitors: [], image: "i", pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" } },
    { name: "e", iscsi: { targetPortal: "p", iqn: "i", lun: 0, iscsiInterface: "default" } },
    { name: "f", scaleIO: { gateway: "g", system: "s", secretRef: {}, storageMode: "ThinProvisioned", fsType: "xfs" } },
    {
      name: "g",
      azureDisk: { diskName: "d", diskURI: "u", readOnly: true, fsType: "", cachingMode: "ReadWrite", kind: "Shared" },
    },
    { name: "h", ephemeral: { volumeClaimTemplate: { spec: { volumeMode: "Filesystem" } } } },
    { name: "i", hostPath: { path: "/x", type: "File" } },
    { name: "j", secret: null, emptyDir: {} },
  ]);
});

for (const { image, want } of [
  { image: "busybox", want: "Always" },
  { image: "busybox:latest", want: "Always" },
  { image: "busybox:1.28", want: "IfNotPresent" },
  { image: "localhost:5000/busybox", want: "Always" },
  { image: "localhost:5000/busybox:1", want: "IfNotPresent" },
  { image: `busybox@sha256:${"0".repeat(64)}`, want: "IfNotPresent" },
  { image: "Bogus!", want: "IfNotPresent" },
  { image: "Busybox", want: "IfNotPresent" },
  { image: "a".repeat(300), want: "IfNotPresent" },
  { image: `busybox:latest@sha256:${"0".repeat(64)}`, want: "Always" },
]) {
  test(`${image} is pulled ${want}`, () => assert.equal(pullPolicyOf(image), want));
}

for (const { name, status, want } of [
  { name: "nothing of none", status: {}, want: {} },
  { name: "the list of one", status: { podIP: "1.1.1.1" }, want: { podIP: "1.1.1.1", podIPs: [{ ip: "1.1.1.1" }] } },
  {
    name: "the first of a list",
    status: { podIPs: [{ ip: "a" }, { ip: "b" }] },
    want: { podIP: "a", podIPs: [{ ip: "a" }, { ip: "b" }] },
  },
  {
    name: "the one, where the list says otherwise",
    status: { podIP: "c", podIPs: [{ ip: "a" }, { ip: "b" }] },
    want: { podIP: "c", podIPs: [{ ip: "c" }] },
  },
  {
    name: "both, where they agree",
    status: { podIP: "a", podIPs: [{ ip: "a" }, { ip: "b" }] },
    want: { podIP: "a", podIPs: [{ ip: "a" }, { ip: "b" }] },
  },
]) {
  test(`addresses of a pod: ${name}`, () => {
    const pod = { metadata: {}, spec: { containers: [] }, status } as unknown as Pod;
    defaultPod(pod);
    assert.deepEqual(pod.status, want);
  });
}
