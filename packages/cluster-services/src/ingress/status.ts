import type { Client } from "@coxswain/apimachinery/client/client";
import { type Controller, done, newController, type Result } from "@coxswain/apimachinery/controller/controller";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { Source } from "@coxswain/apimachinery/controller/sources";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { LoadBalancerIngress, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { ingresses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

interface StatusOptions {
  readonly ingresses: Lister<Ingress>;
  readonly nodes: Lister<Node>;
  readonly nodeName: string;
  readonly isServed: (ingress: Ingress) => boolean;
  /** What is wrong with an Ingress that is served. */
  readonly problemsOf: (ingress: Ingress) => readonly { readonly reason: string; readonly message: string }[];
  readonly sources: readonly Source[];
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly log: Logger;
  readonly clock: Clock;
  readonly turns: Turns;
}

/** Problems are reported only when they last longer than this: Services are often created after the Ingress that names them. */
const graceMs = 5_000;

/** Writes the address of this node to the Ingresses that are served, and says in events what they name that does not exist. */
export function newStatusController(options: StatusOptions): Controller & { withdraw(signal: AbortSignal): Promise<void> } {
  const { nodes, nodeName, isServed, problemsOf, recorder, client, clock } = options;
  const reported = new Map<ObjectKey, { readonly problems: string; readonly since: number; isReported: boolean }>();
  const write = async (ingress: Ingress, wanted: readonly LoadBalancerIngress[], signal: AbortSignal): Promise<void> => {
    const { namespace, name = "", resourceVersion } = ingress.metadata;
    const body = { metadata: { resourceVersion }, status: { loadBalancer: { ingress: wanted } } };
    const target = { namespace, name, subresource: "status" };
    await client.patch(ingresses, target, { type: "merge", body }, { signal }).catch((err: unknown) => {
      if (!isNotFound(err)) throw err;
    });
  };
  const reconcile = async (key: ObjectKey, signal: AbortSignal): Promise<Result> => {
    const ingress = options.ingresses.get(key);
    if (ingress === undefined || !isServed(ingress)) {
      reported.delete(key);
      return done;
    }
    const wanted = addressesWith(ingress, nodes.list(), nodeName);
    if (wanted !== undefined) await write(ingress, wanted, signal);
    const problems = problemsOf(ingress);
    const text = problems.map(({ message }) => message).join();
    const before = reported.get(key);
    if (before?.problems !== text) {
      reported.set(key, { problems: text, since: clock.monotonic(), isReported: problems.length === 0 });
      return problems.length === 0 ? done : { requeueAfterMs: graceMs };
    }
    if (before.isReported) return done;
    const waitMs = before.since + graceMs - clock.monotonic();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    before.isReported = true;
    for (const { reason, message } of problems) recorder.event(ingress, "Warning", reason, message);
    return done;
  };
  const { sources, log, turns } = options;
  const controller = newController({ name: "ingress-status", sources, reconcile, log, clock, turns });
  return Object.assign(controller, {
    async withdraw(signal: AbortSignal) {
      for (const ingress of options.ingresses.list().filter(isServed)) {
        const left = addressesWith(ingress, nodes.list(), nodeName, false);
        if (left !== undefined) await write(ingress, left, signal);
      }
    },
  });
}

/**
 * Pure: the addresses of an Ingress's status with those of this node and without those of nodes that do not exist.
 * @returns undefined when they are as they should be
 */
export function addressesWith(
  { status }: Ingress,
  nodes: readonly Node[],
  nodeName: string,
  isServing = true,
): LoadBalancerIngress[] | undefined {
  const now = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
  const others = nodes.filter(({ metadata }) => metadata.name !== nodeName);
  const own = nodes.filter(({ metadata }) => metadata.name === nodeName).flatMap(publicAddresses);
  const known = new Set(others.flatMap(publicAddresses));
  const wanted = [...new Set([...now.filter((ip) => known.has(ip)), ...(isServing ? own : [])])].sort();
  if (wanted.join() === now.join()) return undefined;
  return wanted.map((ip) => ({ ip }));
}

/** A node's external addresses; its internal ones where it has none. */
function publicAddresses({ status }: Node): string[] {
  const of = (type: string): string[] => (status?.addresses ?? []).flatMap((one) => (one.type === type ? one.address : []));
  const external = of("ExternalIP");
  return external.length > 0 ? external : of("InternalIP");
}
