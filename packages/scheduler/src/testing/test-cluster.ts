import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { gates as allGates } from "@coxswain/apimachinery/flags/gates";
import { newLister } from "@coxswain/apimachinery/informers/lister";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { newObjectStore } from "@coxswain/apimachinery/informers/store";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, Pod, PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { ClusterCache } from "../cache/cluster-cache.ts";
import { newPodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import { defaultPluginArgs } from "../config/argument-rows.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import { defaultPluginSets, type PluginSets } from "../config/plugin-sets.ts";
import type { Extender } from "../extenders/extender.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import { type Nominator, newNominator } from "../framework/nominator.ts";
import { FitError } from "../framework/status.ts";
import { noMetrics } from "../metrics.ts";
import { plugins } from "../plugins/catalogue.ts";
import type { PluginContext } from "../plugins/plugin-context.ts";
import { PodStatuses } from "../pod-status.ts";
import { newProfile, type Profile, runPreFilter, runPreScore, scoreNodes } from "../profile.ts";
import { type Decision, decide } from "../scheduling-cycle.ts";

export interface TestClusterOptions {
  readonly nodes?: readonly Node[];
  /** Assigned pods: `spec.nodeName` is set. */
  readonly pods?: readonly Pod[];
  /** Further objects that the listers return, by resource. */
  readonly objects?: readonly (readonly [ResourceRef, KubeObject])[];
  /** Take the place of listers over `objects`. */
  readonly informers?: PluginContext["informers"];
  readonly args?: Partial<PluginArgs>;
  readonly sets?: PluginSets;
  readonly extenders?: readonly Extender[];
  readonly gates?: Readonly<Record<string, boolean>>;
  /** Random numbers for the plugins; 0 by default. */
  readonly random?: () => number;
  readonly turns?: Turns;
}

/** An in-memory cluster with the default profile. */
export interface TestCluster {
  readonly profile: Profile;
  /** Nodes and pods that the next cycle sees. */
  readonly cache: ClusterCache;
  readonly nominator: Nominator;
  readonly client: FakeClient;
  readonly clock: FakeClock;
  /** `<type> <reason> <message>` */
  readonly events: string[];
  /** `<kind> <name>` of the objects that the events relate to. */
  readonly related: string[];
  /** Messages that plugins logged as errors. */
  readonly errors: string[];
  snapshot(): ClusterSnapshot;
  decide(pod: Pod): Promise<Decision>;
  /** The selected node's name, or the FitError's message. */
  place(pod: Pod): Promise<string>;
  /** Normalized scores of one plugin by node name. */
  scores(plugin: string, pod: Pod): Record<string, number>;
}

/** Runs single scheduling cycles over fixed objects, with the default profile unless `options` give another. */
export function newTestCluster(options: TestClusterOptions = {}): TestCluster {
  const { nodes = [], pods = [], args = {}, sets = defaultPluginSets("v1beta3"), extenders = [] } = options;
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const cache = new ClusterCache(clock);
  const nominator = newNominator();
  const events: string[] = [];
  const related: string[] = [];
  const errors: string[] = [];
  for (const node of nodes) cache.setNode(node);
  for (const pod of pods) cache.setPod(pod);
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  let profile: Profile | undefined;
  const context: PluginContext = {
    client,
    informers: options.informers ?? listersOver(options.objects ?? []),
    gates: { enabled: (name) => options.gates?.[name] ?? allGates[name]?.default ?? false },
    clock,
    log,
    recorder: recorderInto(events, related),
    metrics: noMetrics,
    nominator,
    statuses: new PodStatuses(client, log),
    extenders,
    random: options.random ?? (() => 0),
    turns: options.turns,
    profile: () => profile as Profile,
  };
  profile = newProfile("default-scheduler", sets, (name) => plugins[name]?.(context, { ...defaultPluginArgs, ...args }));
  const run = async (pod: Pod): Promise<Decision> =>
    decide(profile, new Map(), newPodInfo(pod), cache.snapshot(), {
      percentageOfNodesToScore: 0,
      startIndex: 0,
      random: () => 0.99,
      nominator,
      extenders,
      preferNominatedNode: true,
      turns: options.turns,
    });
  return {
    profile,
    cache,
    nominator,
    client,
    clock,
    events,
    related,
    errors,
    snapshot: () => cache.snapshot(),
    decide: run,
    async place(pod) {
      try {
        return (await run(pod)).nodeName;
      } catch (err) {
        if (err instanceof FitError) return err.message;
        throw err;
      }
    },
    scores(plugin, pod) {
      const info = newPodInfo(pod);
      const state: CycleState = new Map();
      const snapshot = cache.snapshot();
      runPreFilter(profile, state, info, snapshot);
      atOnce(runPreScore(profile, state, info, snapshot.nodes, snapshot));
      const only = { ...profile, at: { ...profile.at, score: profile.plugins.filter(({ name }) => name === plugin) } };
      const weights = new Map([[plugin, 1]]);
      const scores = atOnce(scoreNodes({ ...only, weights }, state, info, snapshot.nodes, snapshot));
      return Object.fromEntries(snapshot.nodes.map(({ name }, i) => [name, scores[i] as number]));
    },
  };
}

function recorderInto(events: string[], related: string[]): EventRecorder {
  return {
    event(_, type, reason, message, options) {
      events.push(`${type} ${reason} ${message}`);
      const { related: to } = options ?? {};
      if (to !== undefined && "metadata" in to) related.push(`${to.kind} ${to.metadata.name}`);
    },
    flush: () => Promise.resolve(),
  };
}

/** Informers with a fixed set of objects; they never deliver events. */
export function listersOver(objects: readonly (readonly [ResourceRef, KubeObject])[]): PluginContext["informers"] {
  return {
    for<T extends KubeObject>(ref: ResourceRef): SharedInformer<T> {
      const store = newObjectStore<T>();
      for (const [of, object] of objects) if (of.resource === ref.resource) store.set(object as T);
      return {
        ref,
        lister: newLister(store),
        synced: true,
        addHandler: () => () => {},
        addIndex: (name, index) => store.addIndex(name, index),
        waitForSync: () => Promise.resolve(),
        run: () => Promise.resolve(),
      };
    },
  };
}

export interface NodeOptions {
  readonly cpu?: string;
  readonly pods?: string;
  readonly labels?: Record<string, string>;
  readonly spec?: object;
}

export const aTestNode = (name: string, { cpu = "4", pods = "110", labels, spec = {} }: NodeOptions = {}): Node => ({
  metadata: { name, labels: { "kubernetes.io/hostname": name, ...labels } },
  spec,
  status: { allocatable: { cpu, memory: "8Gi", pods } },
});

export interface TestPodOptions {
  readonly on?: string;
  readonly cpu?: string;
  readonly labels?: Record<string, string>;
  readonly namespace?: string;
  readonly priority?: number;
  readonly spec?: Partial<PodSpec>;
  readonly metadata?: object;
  readonly status?: object;
}

/** A pod whose uid is its name. */
export const aTestPod = (name: string, options: TestPodOptions = {}): Pod => {
  const { on, cpu = "1", labels, namespace = "default", priority, spec, metadata, status = {} } = options;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, uid: name, ...(labels === undefined ? {} : { labels }), ...metadata },
    spec: {
      containers: [{ name: "main", image: "busybox", resources: { requests: { cpu } } }],
      ...(on === undefined ? {} : { nodeName: on }),
      ...(priority === undefined ? {} : { priority }),
      ...spec,
    },
    status,
  };
};
