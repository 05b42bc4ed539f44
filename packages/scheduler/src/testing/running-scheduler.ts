import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { gates as allGates } from "@coxswain/apimachinery/flags/gates";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { defaultPluginArgs } from "../config/argument-rows.ts";
import { defaultPluginSets } from "../config/plugin-sets.ts";
import type { Extender } from "../extenders/extender.ts";
import { newSchedulerMetrics } from "../metrics.ts";
import { Scheduler } from "../scheduler.ts";
import { aTestNode, aTestPod, type NodeOptions, type TestPodOptions } from "./test-cluster.ts";

/** Runs the scheduler with a fake client; `step` advances the clock by `ms` and waits until the scheduler is idle. */
export async function startScheduler(
  t: { after(fn: () => void): void },
  options: {
    schedulerNames?: readonly string[];
    extenders?: readonly Extender[];
    percentageOfNodesToScore?: number;
    /** Default true. */
    recording?: boolean;
    /** Feature gates that differ from their defaults. */
    gates?: Readonly<Record<string, boolean>>;
    podInitialBackoffMs?: number;
    podMaxBackoffMs?: number;
    turns?: Turns;
    /** Called before the informers start. */
    before?: (client: FakeClient) => void;
  } = {},
) {
  const { schedulerNames = ["default-scheduler"], extenders = [], podInitialBackoffMs, podMaxBackoffMs, turns } = options;
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  // The binding subresource sets the pod's node, as in the API server.
  client.react("create", "pods", ({ subresource, namespace, name, sent }) => {
    if (subresource !== "binding") return undefined;
    const pod = client.object<Pod>(pods, `${namespace}/${name}`);
    const nodeName = (sent as { target: { name: string } }).target.name;
    if (pod !== undefined) client.put(pods, { ...pod, spec: { ...pod.spec, nodeName } });
    return {};
  });
  const events: string[] = [];
  const errors: string[] = [];
  const registry = newMetricsRegistry();
  const decisions = new DecisionLog({ component: "kube-scheduler", clock });
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const scheduler = new Scheduler({
    client,
    informers,
    profiles: schedulerNames.map((schedulerName) => ({
      schedulerName,
      plugins: defaultPluginSets("v1beta3"),
      args: defaultPluginArgs,
      configured: [],
    })),
    extenders,
    gates: { enabled: (name) => options.gates?.[name] ?? allGates[name]?.default ?? false },
    recorderOf: (schedulerName) => recorderInto(events, schedulerName),
    clock,
    log: { ...discardLogger, error: (message) => void errors.push(message) },
    percentageOfNodesToScore: options.percentageOfNodesToScore ?? 0,
    metrics: newSchedulerMetrics(registry, clock, () => 0),
    random: () => 0.99,
    ...(podInitialBackoffMs !== undefined && { podInitialBackoffMs }),
    ...(podMaxBackoffMs !== undefined && { podMaxBackoffMs }),
    ...(turns !== undefined && { turns }),
    ...(options.recording !== false && { decisions }),
  });
  const stop = new AbortController();
  t.after(() => stop.abort(new Error("the test is over")));
  options.before?.(client);
  informers.start(stop.signal);
  const running = scheduler.run(stop.signal).catch(() => {});
  await settle(60);
  const step = async (ms = 0): Promise<void> => {
    await settle(60);
    if (ms > 0) await clock.advance(ms);
    await settle(60);
  };
  /** Ends the scheduler and its informers. */
  const end = async (): Promise<void> => {
    stop.abort(new Error("the scheduler is stopped"));
    await running;
  };
  return { client, clock, events, errors, registry, decisions, step, end, names: { ...named(client) } };
}

const named = (client: FakeClient) => ({
  node: (name: string, options?: NodeOptions) =>
    client.put(nodes, { apiVersion: "v1", kind: "Node", ...aTestNode(name, options) }),
  pod: (name: string, options?: TestPodOptions) => client.put(pods, aTestPod(name, options)),
  where: (name: string) => client.object<Pod>(pods, `default/${name}`)?.spec.nodeName,
  status: (name: string) => client.object<Pod>(pods, `default/${name}`)?.status,
});

/** `<object> <type> <reason> <action>: <message>`; the message begins with the scheduler's name if that is not the default one. */
function recorderInto(events: string[], schedulerName: string): EventRecorder {
  const prefix = schedulerName === "default-scheduler" ? "" : `${schedulerName}: `;
  return {
    event: ({ metadata }: { metadata?: { name?: string } } & object, type, reason, message, options) =>
      void events.push(`${metadata?.name} ${type} ${reason} ${options?.action}: ${prefix}${message}`),
    flush: () => Promise.resolve(),
  };
}
