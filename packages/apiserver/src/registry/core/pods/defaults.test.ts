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
  const spec = defaulted({ hostNetwork: true, initContainers: [container(79)], containers: [container(80), container(81)] });
  assert.deepEqual(
    [...(spec.initContainers ?? []), ...spec.containers].flatMap(({ ports }) => ports),
    [79, 80, 81].map((port) => ({ containerPort: port, hostPort: port, protocol: "TCP" })),
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
