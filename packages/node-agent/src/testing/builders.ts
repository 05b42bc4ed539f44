import type { Container, PodSpec, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { NodePod } from "../pod/pod.ts";
import type { ProbeResults } from "../probes/results.ts";
import type { ContainerRecord, PodRecord, SandboxRecord } from "../runtime/pod-record.ts";

export function aContainer(overrides: Partial<Container> = {}): Container {
  return { name: "main", image: "registry.test/busybox:1", resources: {}, ...overrides };
}

export function aNodePod(
  spec: Partial<PodSpec> = {},
  metadata: Partial<NodePod["metadata"]> = {},
  status?: NodePod["status"],
): NodePod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default", uid: "uid-1", ...metadata },
    spec: { restartPolicy: "Always", containers: [aContainer()], ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

/** A Pod with one container that mounts all of these volumes. */
export function aPodWithVolumes(
  volumes: readonly Volume[],
  spec: Partial<PodSpec> = {},
  metadata: Partial<NodePod["metadata"]> = {},
): NodePod {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  return aNodePod({ volumes: [...volumes], containers: [aContainer({ volumeMounts })], ...spec }, metadata);
}

let lastId = 0;

export function aContainerRecord(overrides: Partial<ContainerRecord> = {}): ContainerRecord {
  return {
    id: `c${++lastId}`,
    sandboxId: "s1",
    name: "main",
    state: "running",
    image: "registry.test/busybox:1",
    imageRef: "sha256:1",
    hash: "",
    restartCount: 0,
    createdAt: 1000,
    startedAt: 1000,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    logPath: "",
    annotations: {},
    ...overrides,
  };
}

export function aSandboxRecord(overrides: Partial<SandboxRecord> = {}): SandboxRecord {
  return { id: "s1", attempt: 0, ready: true, createdAt: 1000, ips: ["10.0.0.5"], hostNetwork: false, ...overrides };
}

export function aPodRecord(
  containers: readonly ContainerRecord[] = [],
  sandboxes: readonly SandboxRecord[] = [aSandboxRecord()],
): PodRecord {
  return { uid: "uid-1", name: "web", namespace: "default", sandboxes, containers };
}

/** Results for Pods without probes. */
export const noProbes: ProbeResults = {
  liveness: () => undefined,
  startup: () => undefined,
  readiness: () => undefined,
  isProbed: () => false,
};
