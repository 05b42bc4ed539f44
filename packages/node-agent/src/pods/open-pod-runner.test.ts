import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import type { NodeIdentity } from "../node/identity.ts";
import type { NodePod } from "../pod/pod.ts";
import { ProbeManager } from "../probes/probe-manager.ts";
import { noObjects } from "../sources/api-objects.ts";
import type { MirrorPods } from "../status/mirror-pods.ts";
import { newStatusManager } from "../status/status-manager.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { noCgroups } from "../testing/runner.ts";
import { newVolumeManager } from "../volumes/volume-manager.ts";
import { type OpenRunnerOptions, openPodRunner } from "./open-pod-runner.ts";

interface Options {
  config?: Partial<AgentConfig>;
  gates?: Readonly<Record<string, boolean>>;
  api?: OpenRunnerOptions["api"];
}

/** Starts a Pod by a runner of this configuration. @returns what the runtime was given for its container */
async function bench(t: TestContext, { config = {}, gates = {}, api }: Options) {
  const rootDir = await mkdtemp(join(tmpdir(), "cox-open-runner-"));
  t.after(() => rm(rootDir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const log = discardLogger;
  const runtime = newFakeRuntime(clock);
  runtime.addImage("registry.test/busybox:1");
  const mounter = { mount: async () => undefined, unmount: async () => undefined, mountsBelow: async () => [] };
  const event = () => undefined;
  const status = newStatusManager({ client: undefined, clock, log, apiPodOf: () => undefined });
  const probes = new ProbeManager({ runtime, clock, log, event, statusOf: () => undefined, onChange: event, grpcEnabled: false });
  const mirrored: string[] = [];
  const runner = await openPodRunner({
    config: {
      rootDir,
      resolvConf: "",
      clusterDns: [],
      clusterDomain: "k",
      cpuCfsQuota: true,
      cpuCfsPeriodMs: 50,
      seccompDefault: true,
      swapBehavior: "",
      imageCredentialProviders: { configFile: "", binDir: "" },
      serializeImagePulls: false,
      registryQps: 0,
      registryBurst: 0,
      ...config,
    } as unknown as AgentConfig,
    featureGates: newFeatureGates("kubelet", gates),
    identity: { machine: { memoryBytes: 2 ** 32, pageSizes: [] }, nodeName: "n1", ips: ["192.0.2.1"] } as unknown as NodeIdentity,
    api,
    mirrors: { ensure: async (pod: NodePod) => void mirrored.push(pod.metadata.name) } as unknown as MirrorPods,
    runtime,
    event,
    podLogsDir: join(rootDir, "logs"),
    containerLogsDir: join(rootDir, "links"),
    allocatable: () => ({}),
    volumes: newVolumeManager({ podsDir: join(rootDir, "pods"), objects: noObjects, mounter, clock, log }),
    objects: noObjects,
    cgroups: noCgroups,
    probes,
    status,
    mounter,
    clock,
    log,
    networkProblem: () => undefined,
  });
  const limits = { cpu: "1", memory: "1Gi" };
  const pod = aNodePod({ containers: [aContainer({ resources: { limits, requests: { memory: "512Mi" } } })] });
  const outcome = await runner.sync(pod, new AbortController().signal);
  return { outcome, mirrored, linux: runtime.find("main")?.config.linux };
}

const runtimeDefault = 0;
const unconfined = 1;

test("a container has the configured CFS period, and the runtime's seccomp profile with the gate SeccompDefault", async (t) => {
  const plain = await bench(t, {});
  assert.partialDeepStrictEqual(plain.linux, { resources: { cpuPeriod: 50_000, cpuQuota: 50_000 } });
  assert.deepEqual([plain.linux?.securityContext?.seccomp?.profileType, plain.mirrored], [unconfined, ["web"]]);
  const { linux } = await bench(t, { gates: { SeccompDefault: true } });
  assert.equal(linux?.securityContext?.seccomp?.profileType, runtimeDefault);
});

test("with the gate NodeSwap the limit of memory and swap depends on the configured behaviour", async (t) => {
  const swapOf = async (options: Options) => (await bench(t, options)).linux?.resources?.memorySwapLimitInBytes;
  const gates = { NodeSwap: true };
  assert.equal(await swapOf({}), undefined);
  const limited = await swapOf({ gates });
  assert.notEqual(limited, undefined);
  const unlimited = await swapOf({ gates, config: { swapBehavior: "UnlimitedSwap" } });
  assert.notEqual(unlimited, limited);
});

test("a pod waits for the services to be read", async (t) => {
  const services = { synced: false, lister: { list: (): Service[] => [] } };
  const api = { services } as unknown as NonNullable<OpenRunnerOptions["api"]>;
  assert.match(String(Object.values((await bench(t, { api })).outcome)[1]), /services have not yet been read at least once/);
  services.synced = true;
  assert.equal((await bench(t, { api })).outcome.kind, "synced");
});
