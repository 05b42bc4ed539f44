import assert from "node:assert/strict";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { ControllerManagerConfig } from "../config/controller-manager-config.ts";
import { defaultRecyclerPod } from "../config/volumes.ts";
import type { ControllerContext, Runnable } from "../controller-context.ts";
import { ResourceDiscovery } from "../resource-discovery.ts";

/** Configuration with the default flag values. */
export const defaultConfig: ControllerManagerConfig = {
  controllers: new Set(),
  kubeconfig: "",
  master: "",
  qps: 20,
  burst: 30,
  contentType: "application/vnd.kubernetes.protobuf",
  minResyncPeriodMs: 43_200_000,
  controllerStartIntervalMs: 0,
  leaderElection: {
    enabled: true,
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2000,
    resourceLock: "leases",
    resourceName: "kube-controller-manager",
    resourceNamespace: "kube-system",
  },
  leaderMigration: undefined,
  cloud: { external: false, configureRoutes: true },
  concurrency: {
    deployment: 5,
    replicaSet: 5,
    replicationController: 5,
    statefulSet: 5,
    endpoint: 5,
    endpointSlice: 5,
    endpointSliceMirroring: 5,
    garbageCollector: 20,
    namespace: 10,
    resourceQuota: 5,
    serviceAccountToken: 5,
    ttlAfterFinished: 5,
    ephemeralVolume: 5,
  },
  endpointUpdatesBatchMs: 0,
  endpointSliceUpdatesBatchMs: 0,
  maxEndpointsPerSlice: 100,
  mirroring: { maxEndpointsPerSubset: 1000, updatesBatchMs: 0 },
  horizontalPodAutoscaler: {
    syncPeriodMs: 15_000,
    downscaleStabilizationMs: 300_000,
    rules: { tolerance: 0.1, cpuInitializationMs: 300_000, initialReadinessMs: 30_000 },
  },
  garbageCollector: true,
  namespaceSyncPeriodMs: 300_000,
  resourceQuotaSyncPeriodMs: 300_000,
  nodeIpam: { ranges: [], serviceCidrs: [] },
  nodeLifecycle: {
    monitorPeriodMs: 5000,
    monitorGraceMs: 40_000,
    startupGraceMs: 60_000,
    podEvictionTimeoutMs: 300_000,
    taintManager: true,
    evictionRate: 0.1,
    secondaryEvictionRate: 0.01,
    largeClusterSizeThreshold: 50,
    unhealthyZoneThreshold: 0.55,
  },
  terminatedPodGcThreshold: 12_500,
  useServiceAccountCredentials: false,
  rootCa: undefined,
  serviceAccountKey: undefined,
  certificateSigning: { files: new Map(), durationMs: 31_536_000_000 },
  volumes: {
    binderSyncPeriodMs: 15_000,
    dynamicProvisioning: true,
    hostPathProvisioner: false,
    recyclers: {
      hostPath: { template: defaultRecyclerPod, minimumTimeoutSeconds: 60, timeoutIncrementSeconds: 30 },
      nfs: { template: defaultRecyclerPod, minimumTimeoutSeconds: 300, timeoutIncrementSeconds: 30 },
    },
    attachDetach: { syncPeriodMs: 60_000, sync: true },
    flexPluginDir: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
  },
};

export interface TestContext {
  readonly client: FakeClient;
  readonly clock: FakeClock;
  readonly ctx: ControllerContext;
  /** Recorded Events as `<type> <reason> <message>`. */
  readonly events: string[];
  /** Their objects as `<kind> <namespace>/<name>`, in the same order. */
  readonly regarding: string[];
  /** Uids of their objects, and their sources where the controller names one, in the same order. */
  readonly recorded: { readonly uid: string | undefined; readonly component: string | undefined }[];
  readonly signal: AbortSignal;
  /** Starts controllers and waits until they are idle. */
  run(...controllers: (Runnable | undefined)[]): Promise<void>;
}

/** In-memory controller context with fake client, fake clock and informers. Everything stops at the end of the test. */
export function newTestContext(
  t: { after(fn: () => void): void },
  config: Partial<ControllerManagerConfig> = {},
  gates: Readonly<Record<string, boolean>> = {},
): TestContext {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  const events: string[] = [];
  const regarding: string[] = [];
  const recorded: TestContext["recorded"][number][] = [];
  const recorderOf = (component?: string): EventRecorder => ({
    event(object, type, reason, message) {
      events.push(`${type} ${reason} ${message}`);
      const { namespace, name, uid } = "metadata" in object ? object.metadata : object;
      recorded.push({ uid, component });
      regarding.push(`${object.kind} ${namespace === undefined ? name : `${namespace}/${name}`}`);
    },
    flush: () => Promise.resolve(),
  });
  const unsignalled: string[] = [];
  t.after(() => assert.deepEqual(unsignalled, [], "these requests would go on after the controller's end"));
  const ctx: ControllerContext = {
    client: noting(client, unsignalled),
    decisions: new DecisionLog({ component: "kube-controller-manager", clock }),
    informers,
    discovery: new ResourceDiscovery(informers.client, clock),
    recorder: recorderOf(),
    recorderOf,
    config: { ...defaultConfig, ...config },
    log: discardLogger,
    clock,
    registry: newMetricsRegistry(),
    turns: newUnlimitedTurns(),
    featureGates: newFeatureGates("kube-controller-manager", gates),
  };
  return {
    client,
    clock,
    ctx,
    events,
    regarding,
    recorded,
    signal: stop.signal,
    async run(...controllers) {
      informers.start(stop.signal);
      for (const controller of controllers) void controller?.run(stop.signal);
      await settle(30);
    },
  };
}

const requests: ReadonlySet<string> = new Set(["get", "list", "create", "update", "patch", "delete", "deleteCollection"]);

/** Records requests without an abort signal. */
function noting(client: Client, unsignalled: string[]): Client {
  return new Proxy(client, {
    get(target, verb: keyof Client) {
      const method = target[verb] as (...args: unknown[]) => unknown;
      if (!requests.has(verb)) return method.bind(target); // its private fields are not the proxy's
      return (...args: unknown[]) => {
        const { signal } = (args.at(-1) ?? {}) as { signal?: unknown };
        if (!(signal instanceof AbortSignal)) unsignalled.push(`${verb} ${(args[0] as { resource?: string }).resource}`);
        return method.apply(target, args);
      };
    },
  });
}
