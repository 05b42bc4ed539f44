import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { formatDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { labelNames } from "./labels.ts";
import type { ContainerRuntime } from "./runtime.ts";

/** State of a Pod's sandboxes and containers at a relist. */
interface RuntimePodSummary {
  uid: string;
  name: string;
  namespace: string;
  /** Sandbox or container ID → state. */
  states: ReadonlyMap<string, string>;
}

interface LifecycleEventsOptions {
  runtime: ContainerRuntime;
  clock: Clock;
  log: Logger;
  /** Called when the state of a sandbox or container of the Pod changed. */
  onChange: (uid: string) => void;
  onRelist?: (tookMs: number) => void;
}

/** The Pod lifecycle event generator (PLEG). */
export interface LifecycleEvents {
  run(signal: AbortSignal): Promise<void>;
  /** Lists all sandboxes and containers now. @throws RuntimeError */
  relist(): Promise<void>;
  /** Pods known to the runtime as of the last relist; undefined before the first. */
  pods(): ReadonlyMap<string, RuntimePodSummary> | undefined;
  /** The error text when the last successful relist is too long ago. */
  problem(): string | undefined;
}

const periodMs = 1_000;
const unhealthyAfterMs = 3 * 60_000;

/** Detects state changes by listing all sandboxes and containers every second. Source: pkg/kubelet/pleg/generic.go */
export function newLifecycleEvents(options: LifecycleEventsOptions): LifecycleEvents {
  const { clock, log, runtime } = options;
  let known: Map<string, RuntimePodSummary> | undefined;
  let lastRelist = clock.monotonic();

  async function relist(): Promise<void> {
    const started = clock.monotonic();
    const [sandboxes, containers] = await Promise.all([runtime.listPodSandboxes(), runtime.listContainers()]);
    const now = new Map<string, RuntimePodSummary & { states: Map<string, string> }>();
    const podOf = (labels: Readonly<Record<string, string>>): { states: Map<string, string> } | undefined => {
      const uid = labels[labelNames.podUid];
      if (uid === undefined) return undefined; // not created by a kubelet
      const pod = now.get(uid) ?? {
        uid,
        name: labels[labelNames.podName] ?? "",
        namespace: labels[labelNames.podNamespace] ?? "",
        states: new Map<string, string>(),
      };
      now.set(uid, pod);
      return pod;
    };
    for (const sandbox of sandboxes) podOf(sandbox.labels)?.states.set(sandbox.id, `sandbox ${sandbox.state}`);
    for (const container of containers) podOf(container.labels)?.states.set(container.id, `container ${container.state}`);
    const before = known ?? new Map<string, RuntimePodSummary>();
    known = now;
    lastRelist = clock.monotonic();
    options.onRelist?.(lastRelist - started);
    for (const uid of new Set([...before.keys(), ...now.keys()])) {
      if (differ(before.get(uid)?.states, now.get(uid)?.states)) options.onChange(uid);
    }
  }

  return {
    relist,
    async run(signal) {
      while (!signal.aborted) {
        try {
          await relist();
        } catch (err) {
          log.v(2)?.info("cannot list what runs", { reason: messageOf(err) });
        }
        await clock.sleep(periodMs, signal).catch(() => undefined);
      }
    },
    pods: () => known,
    problem() {
      if (known === undefined) return "PLEG is not healthy: pleg has yet to be successful";
      const elapsed = clock.monotonic() - lastRelist;
      if (elapsed <= unhealthyAfterMs) return undefined;
      return `PLEG is not healthy: pleg was last seen active ${formatDuration(elapsed)} ago; threshold is ${formatDuration(unhealthyAfterMs)}`;
    },
  };
}

function differ(a: ReadonlyMap<string, string> | undefined, b: ReadonlyMap<string, string> | undefined): boolean {
  if (a?.size !== b?.size) return true;
  for (const [id, state] of a ?? []) if (b?.get(id) !== state) return true;
  return false;
}
