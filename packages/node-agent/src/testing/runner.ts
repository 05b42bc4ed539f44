import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import { newPodRunner, type PodRunner } from "../pods/pod-runner.ts";
import type { PodRunnerOptions } from "../pods/pod-runner-options.ts";
import { newHookRunner } from "../probes/lifecycle-hooks.ts";
import { ProbeManager } from "../probes/probe-manager.ts";
import type { Cgroups } from "../resources/cgroups.ts";
import { ImagePuller } from "../runtime/images.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { noObjects } from "../sources/api-objects.ts";
import { newStatusManager, type StatusManager } from "../status/status-manager.ts";
import type { Mounter } from "../volumes/mount.ts";
import { newVolumeManager, type VolumeManager } from "../volumes/volume-manager.ts";

interface TestRunner {
  runner: PodRunner;
  status: StatusManager;
  volumes: VolumeManager;
  events: { container: string | undefined; type: string; reason: string; message: string }[];
  statusOf(pod: NodePod): PodStatus | undefined;
}

export const noCgroups: Cgroups = {
  start: async () => undefined,
  enforceReserved: async () => undefined,
  ofPods: "/",
  parentOf: () => "",
  ensure: async () => undefined,
  exists: async () => false,
  remove: async () => true,
  memoryOfPods: async () => undefined,
  tasksOf: async () => 0,
  list: async () => [],
  unifiedOf: () => ({}),
  updateClasses: async () => undefined,
};

const noMounts: Mounter = { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] };

/** A volume manager that answers by `inner`, except for the methods in `changed`. */
export const volumesLike = (inner: VolumeManager, changed: Partial<VolumeManager>): VolumeManager => ({
  setUp: (pod, downward) => inner.setUp(pod, downward),
  of: (uid) => inner.of(uid),
  unmount: (uid) => inner.unmount(uid),
  remove: (uid) => inner.remove(uid),
  list: () => inner.list(),
  exists: (uid) => inner.exists(uid),
  podDir: (uid) => inner.podDir(uid),
  isRefreshed: (pod) => inner.isRefreshed(pod),
  ...changed,
});

/** A Pod runner on any runtime; its files are in a temporary directory. */
export async function newTestRunner(
  t: { after(fn: () => Promise<void>): void },
  runtime: ContainerRuntime,
  clock: Clock,
  options: { dir?: string } & Partial<PodRunnerOptions> = {},
): Promise<TestRunner & { dir: string }> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "cox-runner-")));
  if (options.dir === undefined) t.after(() => rm(dir, { recursive: true, force: true }));
  const log = discardLogger;
  const events: TestRunner["events"] = [];
  const event: PodRunnerOptions["containers"]["event"] = (_, container, type, reason, message) =>
    void events.push({ container: container?.name, type, reason, message });
  const status = newStatusManager({ client: undefined, clock, log, apiPodOf: () => undefined });
  const volumes = newVolumeManager({ podsDir: join(dir, "pods"), objects: noObjects, mounter: noMounts, clock, log });
  const probes = new ProbeManager({
    runtime,
    clock,
    log,
    event,
    statusOf: (uid) => status.get(uid),
    onChange: () => undefined,
    grpcEnabled: false,
  });
  const runner = newPodRunner({
    containers: {
      runtime,
      clock,
      log,
      event,
      runHook: newHookRunner(runtime),
      podLogsDir: join(dir, "logs"),
      containerLogsDir: join(dir, "links"),
      seccompDefault: false,
      seccompRoot: join(dir, "seccomp"),
    },
    images: new ImagePuller({ runtime, clock, serialize: false, qps: 0, burst: 0 }),
    volumes,
    objects: noObjects,
    cgroups: noCgroups,
    probes,
    status,
    mounter: noMounts,
    clock,
    log,
    node: {
      name: "node1",
      ips: () => ["192.0.2.1"],
      allocatable: () => ({ cpu: "2", memory: "4Gi" }),
      memoryCapacityBytes: 4 * 1024 ** 3,
      cfsQuota: true,
      cfsPeriodUs: 100_000,
      pageSizes: [],
      clusterDomain: "cluster.local",
    },
    dns: () => ({
      clusterDns: [],
      clusterDomain: "",
      host: { servers: ["192.0.2.53"], searches: [], options: [] },
      hostIps: ["192.0.2.1"],
    }),
    services: () => [],
    networkProblem: () => undefined,
    runtimeHandler: async () => "",
    ...options,
  });
  return { runner, status, volumes, events, statusOf: (pod) => status.get(pod.metadata.uid), dir };
}
