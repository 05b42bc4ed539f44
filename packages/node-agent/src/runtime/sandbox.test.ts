import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { labelNames } from "./labels.ts";
import { sandboxConfig } from "./sandbox.ts";

const settings = {
  attempt: 3,
  hostname: "web",
  dns: { servers: ["10.96.0.10"], searches: ["x"], options: ["ndots:5"] },
  cgroupParent: "/kubepods/poduid-1",
  logDirectory: "/var/log/pods/x",
  volumeGroups: [9],
};
const of = (spec: Partial<PodSpec>) => sandboxConfig(aNodePod(spec), settings);

test("a sandbox is named after its pod, whose labels cannot change its identity", () => {
  const labels = { app: "web", [labelNames.podUid]: "another" };
  const config = sandboxConfig(aNodePod({}, { labels, annotations: { note: "1" } }), settings);
  hasFields(config, {
    metadata: { name: "web", namespace: "default", uid: "uid-1", attempt: 3 },
    labels: { app: "web", [labelNames.podUid]: "uid-1", [labelNames.podName]: "web", [labelNames.podNamespace]: "default" },
    annotations: { note: "1" },
    logDirectory: "/var/log/pods/x",
    dnsConfig: settings.dns,
    linux: { cgroupParent: "/kubepods/poduid-1" },
  });
});

const ports = [
  { containerPort: 80, hostPort: 8080, hostIP: "192.0.2.1" },
  { containerPort: 80, hostPort: 8080, hostIP: "192.0.2.2" },
  { containerPort: 53, protocol: "UDP" as const },
];
const containers = [
  aContainer({ ports }),
  aContainer({
    name: "b",
    ports: [
      { containerPort: 53, protocol: "TCP" },
      { containerPort: 53, protocol: "UDP" },
    ],
  }),
];

test("the ports of all containers are mapped once each, by protocol", () => {
  const { portMappings, hostname } = of({ containers });
  assert.deepEqual(
    portMappings?.map(({ protocol, containerPort, hostPort, hostIp }) => `${protocol} ${containerPort} ${hostPort} ${hostIp}`),
    ["0 80 8080 192.0.2.1", "0 80 8080 192.0.2.2", "1 53 0 ", "0 53 0 "],
  );
  assert.equal(hostname, "web");
});

test("a pod of the node's network has no mapped ports and the node's host name", () => {
  const { portMappings, hostname } = of({ containers, hostNetwork: true });
  assert.deepEqual([portMappings, hostname], [[], ""]);
});

test("a sandbox has the pod's user, groups and kernel settings, and the runtime's seccomp profile", () => {
  const { linux } = of({
    securityContext: {
      runAsUser: 1,
      runAsGroup: 2,
      fsGroup: 3,
      supplementalGroups: [4],
      seLinuxOptions: { level: "s0" },
      sysctls: [
        { name: "a", value: "1" },
        { name: "b", value: "2" },
      ],
      seccompProfile: { type: "Unconfined" },
    },
  });
  assert.deepEqual(linux, {
    cgroupParent: "/kubepods/poduid-1",
    sysctls: { a: "1", b: "2" },
    securityContext: {
      privileged: false,
      seccomp: { profileType: 0 },
      namespaceOptions: { network: 0, ipc: 0, pid: 1 },
      selinuxOptions: { level: "s0" },
      runAsUser: { value: 1 },
      runAsGroup: { value: 2 },
      supplementalGroups: [3, 9, 4],
    },
  });
});

for (const [where, spec] of [
  ["an init container", { initContainers: [aContainer({ name: "i", securityContext: { privileged: true } })] }],
  ["the second container", { containers: [aContainer(), aContainer({ name: "b", securityContext: { privileged: true } })] }],
] as [string, Partial<PodSpec>][]) {
  test(`the sandbox is privileged when ${where} is`, () => assert.equal(of(spec).linux?.securityContext?.privileged, true));
}
