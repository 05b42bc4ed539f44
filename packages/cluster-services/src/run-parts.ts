import type { Client, ClientFamily } from "@coxswain/apimachinery/client/client";
import { userAgentOf } from "@coxswain/apimachinery/client/config";
import { newEventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { type LeaderElectionConfig, runLeaderElection } from "@coxswain/apimachinery/controller/leader-election";
import type { LeaderStatus } from "@coxswain/apimachinery/controller/leader-status";
import { newResourceLock } from "@coxswain/apimachinery/controller/resource-lock";
import { type InformerFactory, newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { informerFailures } from "@coxswain/apimachinery/informers/metrics";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { ServicesFlags } from "./flags.ts";
import { identityOf } from "./host/identity.ts";
import type { PartContext, PartDefinition } from "./part.ts";
import type { PartHealth } from "./part-health.ts";
import { runPart } from "./run-part.ts";
import { withoutUnread } from "./without-unread.ts";

export const program = "coxswain-services";

/**
 * Period in which each process retries once while the API server cannot be reached. It does not grow with the duration of the
 * outage, since rules and DNS answers have to be correct within 2 s of the server's return. It grows with the number of nodes
 * instead, over which the processes are spread, so that at most 1,000 of them connect in a second, each with one connection and
 * watches that resume. When the server answers that it is overloaded, the backoff of other clients applies.
 */
export const reconnectPeriodMs = (nodeCount: number): number => Math.max(500, 2 * nodeCount);

export interface RunOptions {
  readonly parts: readonly PartDefinition[];
  readonly flags: ServicesFlags;
  readonly nodeName: string;
  readonly family: ClientFamily;
  readonly leaderElection: LeaderElectionConfig;
  /** Status of the lease; undefined when no part needs it. */
  readonly leadership: LeaderStatus | undefined;
  readonly health: PartHealth;
  readonly log: Logger;
  readonly clock: Clock;
  readonly turns: Turns;
  readonly metrics: MetricsRegistry;
  readonly signal: AbortSignal;
}

/** Runs the parts of the node, and while the lease is held those that run once. Resolves after `signal` is aborted. */
export async function runParts(options: RunOptions): Promise<void> {
  const { parts, family, log, clock, metrics, health, signal } = options;
  const nodeCount = (): number => (informers.hasAll(nodes) ? informers.for(nodes).lister.list().length : 0);
  const reconnection = new Reconnection({ periodMs: () => reconnectPeriodMs(nodeCount()), clock });
  const informers: InformerFactory = newInformerFactory(
    family.member({ qps: -1, userAgent: userAgentOf(program, "shared-informers") }),
    {
      log: log.named("informers"),
      clock,
      reconnection,
      transform: withoutUnread,
      onFailure: informerFailures(metrics),
      turns: options.turns.ahead,
    },
  );
  informers.start(signal);
  const run = (definition: PartDefinition, until: AbortSignal): Promise<void> =>
    runPart(definition, { ...contextOf(options, definition.name), informers, reconnection }, health, until);
  const once = parts.filter(({ runs }) => runs === "once");
  await Promise.all([
    ...parts.filter(({ runs }) => runs === "node").map((part) => run(part, signal)),
    ...(once.length === 0
      ? []
      : [whileLeading({ ...options, reconnection }, (leading) => Promise.all(once.map((part) => run(part, leading))))]),
  ]);
}

/** Clients of a part: its own rate limit, and another for events, which must not delay its work. */
function contextOf(options: RunOptions, name: string): Omit<PartContext, "signal" | "fail" | "informers" | "reconnection"> {
  const { flags, nodeName, family, clock, turns, metrics } = options;
  const log = options.log.named(name);
  const newMember = (): Client =>
    family.member({ qps: flags["kube-api-qps"], burst: flags["kube-api-burst"], userAgent: userAgentOf(program, name) });
  const recorder = newEventRecorder({ client: newMember(), component: name, host: nodeName, log, clock });
  return { nodeName, flags, client: newMember(), recorder, log, clock, turns, metrics };
}

/** Works while this process holds the lease, and waits for it again when it was lost: parts of the node continue meanwhile. */
async function whileLeading(
  options: RunOptions & Pick<PartContext, "reconnection">,
  work: (leading: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const { leaderElection, leadership, family, nodeName, log, clock, signal, reconnection } = options;
  if (!leaderElection.enabled) return void (await work(signal));
  const { resourceLock, resourceNamespace, resourceName } = leaderElection;
  const client = family.member({ userAgent: userAgentOf(program) });
  while (!signal.aborted) {
    let working: Promise<unknown> = Promise.resolve();
    await runLeaderElection({
      ...leaderElection,
      client: family.apart({ qps: -1, userAgent: userAgentOf(program, "leader-election") }),
      lock: newResourceLock(resourceLock, resourceNamespace, resourceName),
      identity: identityOf(nodeName),
      // After a restart the next leader does not have to wait for the lease to expire.
      releaseOnCancel: true,
      onStarted(leading) {
        working = work(AbortSignal.any([signal, leading]));
      },
      ...(leadership !== undefined && { status: leadership }),
      recorder: newEventRecorder({ client, component: program, host: nodeName, log, clock }),
      ...{ log, clock, signal, reconnection },
    });
    await working;
  }
}
