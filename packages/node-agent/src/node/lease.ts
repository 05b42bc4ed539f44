import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { formatMicroTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { HeartbeatClient } from "./heartbeat-client.ts";

interface NodeLeaseOptions {
  client: HeartbeatClient;
  clock: Clock;
  log: Logger;
  nodeName: string;
  durationSeconds: number;
  /** The registered Node, as owner of the lease; undefined before the registration. */
  node: () => Node | undefined;
}

const namespace = "kube-node-lease";
const maxTries = 5;
const firstRetryMs = 200;
const maxRetryMs = 7_000;

/**
 * The node's heartbeat: a Lease that is renewed four times per lease duration.
 * Source: k8s.io/component-helpers apimachinery/lease
 */
export async function runNodeLease(options: NodeLeaseOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options;
  let held: Lease | undefined;
  let retryMs = firstRetryMs;
  const periodMs = (options.durationSeconds * 1000) / 4;
  while (!signal.aborted) {
    let pauseMs = periodMs;
    try {
      held = await renew(options, held, signal);
      retryMs = firstRetryMs;
    } catch (err) {
      if (signal.aborted) return;
      held = undefined;
      log.error("failed to ensure lease exists, will retry", err, { interval: `${retryMs}ms` });
      pauseMs = retryMs;
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
    await clock.sleep(pauseMs, signal).catch(() => undefined);
  }
}

async function renew(options: NodeLeaseOptions, held: Lease | undefined, signal: AbortSignal): Promise<Lease> {
  const { client, nodeName } = options;
  let current = held;
  for (let attempt = 1; ; attempt++) {
    if (current === undefined) {
      try {
        current = await client.get<Lease>(leases, { namespace, name: nodeName }, { signal });
      } catch (err) {
        if (!isNotFound(err)) throw err;
        try {
          return await client.create<Lease>(leases, wanted(options, undefined), { namespace, signal });
        } catch (createErr) {
          if (!isAlreadyExists(createErr) || attempt >= maxTries) throw createErr;
          continue;
        }
      }
    }
    try {
      return await client.update<Lease>(leases, wanted(options, current), { signal });
    } catch (err) {
      if (attempt >= maxTries || !(isConflict(err) || isNotFound(err))) throw err;
      current = undefined;
    }
  }
}

function wanted(options: NodeLeaseOptions, current: Lease | undefined): Lease {
  const { nodeName, clock, durationSeconds } = options;
  const node = options.node();
  const metadata = { ...(current?.metadata ?? { name: nodeName, namespace }) };
  if ((metadata.ownerReferences ?? []).length === 0 && node?.metadata.uid !== undefined) {
    metadata.ownerReferences = [{ apiVersion: "v1", kind: "Node", name: nodeName, uid: node.metadata.uid }];
  }
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata,
    spec: {
      ...current?.spec,
      holderIdentity: nodeName,
      leaseDurationSeconds: durationSeconds,
      renewTime: formatMicroTime(clock.now()),
    },
  };
}
