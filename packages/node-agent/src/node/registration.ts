import { isAlreadyExists } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepClone, semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Node, NodeAddress, NodeStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { HeartbeatClient } from "./heartbeat-client.ts";
import {
  attachDetachAnnotation,
  foreignFields,
  type NodeEvent,
  nodeEvents,
  nodeStatusEvent,
  statusChanged,
} from "./node-status.ts";

export interface RegistrationOptions {
  client: HeartbeatClient;
  clock: Clock;
  log: Logger;
  /** The Node to create; not created with `--register-node=false`. */
  initial: () => Node;
  register: boolean;
  nodeName: string;
  /** Computes the status from the Node in the API server. */
  status: (current: Node) => Promise<NodeStatus>;
  updateFrequencyMs: number;
  reportFrequencyMs: number;
  onUpdate: (node: Node) => void;
  notify: (event: NodeEvent) => void;
}

const firstRetryMs = 100;
const maxRetryMs = 7_000;
const statusTries = 5;

/** Registers the node and keeps its status up to date. Source: pkg/kubelet/kubelet_node_status.go */
export class Registration {
  readonly #options: RegistrationOptions;
  #lastReport = Number.NEGATIVE_INFINITY;
  #wasUnschedulable = false;
  #wakeUp = new AbortController();

  constructor(options: RegistrationOptions) {
    this.#options = options;
  }

  /**
   * Registers the node, retrying with delays from 100 ms to 7 s, then reports its status every `updateFrequencyMs`. Resolves
   * after the abort; failures are logged.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#options;
    let retryMs = firstRetryMs;
    while (this.#options.register && !signal.aborted) {
      try {
        if (await this.#register(signal)) break;
      } catch (err) {
        if (!signal.aborted) log.error("Unable to register node with API server", err, { node: this.#options.nodeName });
      }
      await clock.sleep(retryMs, signal).catch(() => undefined);
      retryMs = Math.min(retryMs * 2, maxRetryMs);
    }
    while (!signal.aborted) {
      this.#wakeUp = new AbortController(); // replaced before the report, so that `hurry` during the report triggers another one
      await this.#report(signal);
      await clock.sleep(this.#options.updateFrequencyMs, AbortSignal.any([signal, this.#wakeUp.signal])).catch(() => undefined);
    }
  }

  /** Triggers a status update now, e.g. because a condition changed. */
  hurry(): void {
    this.#wakeUp.abort();
  }

  async #register(signal: AbortSignal): Promise<boolean> {
    const { client, log } = this.#options;
    const desired = this.#options.initial();
    desired.status = await this.#options.status(desired);
    this.#reportChanges(undefined, desired);
    try {
      this.#options.onUpdate(await client.create<Node>(nodes, desired, { signal }));
      log.info("Successfully registered node", { node: this.#options.nodeName });
      return true;
    } catch (err) {
      if (!isAlreadyExists(err)) {
        log.error("Unable to register node with API server", err, { node: this.#options.nodeName });
        return false;
      }
    }
    const current = await client.get<Node>(nodes, { name: this.#options.nodeName }, { signal });
    const next = reconcile(current, desired);
    if (next !== undefined) await client.update<Node>(nodes, next, { signal });
    log.info("Node was previously registered", { node: this.#options.nodeName });
    this.#options.onUpdate(next ?? current);
    return true;
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { client, clock, log } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        const current = await client.get<Node>(
          nodes,
          { name: this.#options.nodeName },
          attempt === 1 ? { resourceVersion: "0", signal } : { signal },
        );
        const status = await this.#options.status(current);
        const due = clock.monotonic() - this.#lastReport >= this.#options.reportFrequencyMs;
        this.#reportChanges(current.status, { ...current, status });
        if (!due && !statusChanged(current.status ?? {}, status, semanticEqual)) {
          this.#options.onUpdate(current);
          return;
        }
        const addresses = addressPatch(current.status?.addresses, status.addresses);
        const body = { status: { ...withoutForeign(status), addresses } };
        const updated = await client.patch<Node>(
          nodes,
          { name: this.#options.nodeName, subresource: "status" },
          { type: "strategic", body },
          { signal },
        );
        this.#lastReport = clock.monotonic();
        this.#options.onUpdate(updated);
        return;
      } catch (err) {
        if (signal.aborted) return;
        log.error("Error updating node status, will retry", err);
        if (attempt >= statusTries) {
          log.error("Unable to update node status", new Error("update node status exceeds retry count"));
          return;
        }
      }
    }
  }

  #reportChanges(before: NodeStatus | undefined, { spec, status = {} }: Node): void {
    const isUnschedulable = spec?.unschedulable === true;
    if (isUnschedulable !== this.#wasUnschedulable)
      this.#options.notify(nodeStatusEvent(this.#options.nodeName, isUnschedulable ? "NodeNotSchedulable" : "NodeSchedulable"));
    this.#wasUnschedulable = isUnschedulable;
    for (const event of nodeEvents(this.#options.nodeName, before, status)) this.#options.notify(event);
  }
}

/**
 * The status without the fields of other writers, which the patch leaves unchanged: what was read may come from the server's watch cache
 * and be older than their last write.
 */
function withoutForeign(status: NodeStatus): NodeStatus {
  const own = { ...status };
  for (const field of foreignFields) delete own[field];
  return own;
}

/**
 * Strategic merge patches merge addresses by type, but a node may have several addresses of one type: replace the list.
 * Without an old list, the directive itself would be stored as an address.
 * Source: pkg/util/node/node.go preparePatchBytesforNodeStatus
 */
function addressPatch(old: readonly NodeAddress[] = [], next: readonly NodeAddress[] = []): unknown[] {
  return old.length === 0 ? [...next] : [...next, { $patch: "replace" }];
}

/** Labels of an existing node that are set again at a restart. Source: pkg/kubelet/kubelet_node_status.go updateDefaultLabels */
export const defaultLabels = [
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "beta.kubernetes.io/os",
  "failure-domain.beta.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "kubernetes.io/arch",
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "node.kubernetes.io/instance-type",
  "node.kubernetes.io/windows-build",
  "topology.kubernetes.io/region",
  "topology.kubernetes.io/zone",
];

/** The registered node with updated labels and annotations; undefined when nothing changes. */
function reconcile(current: Node, desired: Node): Node | undefined {
  const next = deepClone(current);
  const labels = { ...next.metadata.labels };
  for (const name of defaultLabels) {
    const value = desired.metadata.labels?.[name];
    if (value !== undefined) labels[name] = value;
  }
  next.metadata.labels = labels;
  const { [attachDetachAnnotation]: _, ...annotations } = next.metadata.annotations ?? {};
  next.metadata.annotations = { ...annotations, ...desired.metadata.annotations };
  return semanticEqual(next, current) ? undefined : next;
}
