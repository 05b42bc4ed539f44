import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Container, ContainerStatus, PodStatus, Probe } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import type { ContainerEvent } from "../runtime/containers.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { probeExec } from "./exec.ts";
import { probeGrpc } from "./grpc.ts";
import { httpTarget, type ProbeOutcome, portNumber, probeHttp } from "./http.ts";
import type { ProbeResult, ProbeResults } from "./results.ts";
import { probeTcp } from "./tcp.ts";

export type ProbeKind = "liveness" | "readiness" | "startup";
const kinds: readonly ProbeKind[] = ["startup", "readiness", "liveness"];

export interface ProbeManagerOptions {
  runtime: ContainerRuntime;
  clock: Clock;
  /** The probes of thousands of containers, whose timers end together, begin in; absent: at once. */
  turns?: Turns | undefined;
  log: Logger;
  event: ContainerEvent;
  /** The last computed status of a Pod: container states and start times. */
  statusOf: (uid: string) => PodStatus | undefined;
  /** Called when a result has changed, so that the Pod is synced. */
  onChange: (uid: string) => void;
  grpcEnabled: boolean;
  random?: () => number;
  onProbe?: (kind: ProbeKind, result: string, pod: NodePod, container: string) => void;
}

interface Worker {
  kind: ProbeKind;
  pod: NodePod;
  container: Container;
  spec: Probe;
  containerId: string;
  last: ProbeResult | undefined;
  repeated: number;
  /** Set after a failure that restarts the container, until there is a new container. */
  onHold: boolean;
  /** There is no container to probe yet: check again soon. */
  idle: boolean;
  stopped: boolean;
  cancel: () => void;
}

const maxTries = 3;

/** Runs the probes of all Pods on this node, each with its own timer. Source: pkg/kubelet/prober */
export class ProbeManager {
  readonly results: ProbeResults;
  readonly #options: ProbeManagerOptions;
  readonly #random: () => number;
  readonly #startedAt: number;
  readonly #workers = new Map<string, Worker>();
  readonly #results: Record<ProbeKind, Map<string, ProbeResult>> = {
    liveness: new Map(),
    readiness: new Map(),
    startup: new Map(),
  };

  constructor(options: ProbeManagerOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#startedAt = Math.floor(options.clock.now() / 1000) * 1000; // the start of a container is in seconds
    this.results = {
      liveness: (id) => this.#results.liveness.get(id),
      readiness: (id) => this.#results.readiness.get(id),
      startup: (id) => this.#results.startup.get(id),
      isProbed: (kind, uid, name) => this.#workers.has(keyOf(uid, name, kind)),
    };
  }

  /** Starts the probes of the Pod's containers; running probes continue. */
  add(pod: NodePod): void {
    for (const container of pod.spec.containers) {
      for (const kind of kinds) {
        const spec = container[`${kind}Probe`];
        const key = keyOf(pod.metadata.uid, container.name, kind);
        const present = this.#workers.get(key);
        if (present !== undefined) {
          present.pod = pod;
          continue;
        }
        if (spec === undefined) continue;
        const worker: Worker = {
          kind,
          pod,
          container,
          spec,
          containerId: "",
          last: undefined,
          repeated: 0,
          onHold: false,
          idle: true,
          stopped: false,
          cancel: () => {},
        };
        this.#workers.set(key, worker);
        this.#schedule(worker, this.#firstDelayMs(worker));
      }
    }
  }

  /**
   * The probes of containers that this process found running wait for a random part of their period: after a restart on a
   * node with many Pods they would all be executed at once.
   */
  #firstDelayMs({ pod, container, spec }: Worker): number {
    const startedAt = containerIn(this.#options.statusOf(pod.metadata.uid), container.name)?.state?.running?.startedAt;
    const isFound = startedAt != null && (parseTime(startedAt) ?? 0) < this.#startedAt;
    return isFound ? this.#random() * periodMs(spec) : firstDelayMs;
  }

  /** Called when the Pod terminates: containers are no longer restarted, but readiness is still reported. */
  stopLivenessAndStartup(uid: string): void {
    for (const worker of [...this.#workers.values()]) {
      if (worker.pod.metadata.uid === uid && worker.kind !== "readiness") this.#stop(worker);
    }
  }

  /** Stops all probes of a Pod; a probe in progress leaves no result. */
  remove(uid: string): void {
    for (const worker of [...this.#workers.values()]) if (worker.pod.metadata.uid === uid) this.#stop(worker);
  }

  #set(worker: Worker, containerId: string, result: ProbeResult): void {
    const map = this.#results[worker.kind];
    const before = map.get(containerId);
    map.set(containerId, result);
    if (before !== result && !(before === undefined && result === initial[worker.kind]))
      this.#options.onChange(worker.pod.metadata.uid);
  }

  #stop(worker: Worker): void {
    if (worker.stopped) return; // another worker may already have the same key
    worker.stopped = true;
    worker.cancel();
    this.#workers.delete(keyOf(worker.pod.metadata.uid, worker.container.name, worker.kind));
    this.#results[worker.kind].delete(worker.containerId);
  }

  #schedule(worker: Worker, delayMs: number): void {
    if (worker.stopped) return;
    const timer = this.#options.clock.after(delayMs, () => {
      const started = this.#options.clock.monotonic();
      this.#tick(worker)
        .catch((err) => {
          this.#options.log.error("probe errored", err, {
            pod: worker.pod.metadata.uid,
            container: worker.container.name,
            kind: worker.kind,
          });
          return true;
        })
        .then((goOn) => {
          if (!goOn) return this.#stop(worker);
          const tookMs = this.#options.clock.monotonic() - started;
          const pauseMs = worker.idle ? idleMs : periodMs(worker.spec) - tookMs;
          this.#schedule(worker, Math.max(1, pauseMs));
        })
        .catch((err: unknown) => this.#options.log.error("probe cannot be scheduled", err, { container: worker.container.name }));
    });
    worker.cancel = () => timer.cancel();
  }

  /** @returns false when the worker is done */
  async #tick(worker: Worker): Promise<boolean> {
    const turn = this.#options.turns?.next();
    if (turn !== undefined) await turn;
    if (worker.stopped) return false;
    const { uid } = worker.pod.metadata;
    const status = this.#options.statusOf(uid);
    worker.idle = true;
    if (status === undefined) return true;
    if (status.phase === "Failed" || status.phase === "Succeeded") return false;
    const containerStatus = containerIn(status, worker.container.name);
    const id = stripRuntime(containerStatus?.containerID ?? "");
    if (containerStatus === undefined || id === "") return true; // not created yet
    if (worker.containerId !== id) {
      if (worker.containerId !== "") this.#results[worker.kind].delete(worker.containerId);
      worker.containerId = id;
      worker.onHold = false;
      worker.last = undefined;
      this.#set(worker, id, initial[worker.kind]);
    }
    if (worker.onHold) return true;
    const running = containerStatus.state?.running;
    if (running === undefined) {
      this.#set(worker, id, "failure");
      return containerStatus.state?.terminated === undefined || worker.pod.spec.restartPolicy !== "Never";
    }
    const startedAt = parseTime(running.startedAt ?? "") ?? 0;
    if (this.#options.clock.now() - startedAt < (worker.spec.initialDelaySeconds ?? 0) * 1000) return true;
    if (containerStatus.started === true) {
      if (worker.kind === "startup") return true; // a startup probe ends with its first success
    } else if (worker.kind !== "startup") return true;

    worker.idle = false;
    const outcome = await this.#probe(worker, status.podIP ?? "");
    if (worker.stopped) return false;
    if (outcome === undefined) return true; // the probe could not be executed
    const result: ProbeResult = outcome.result === "failure" ? "failure" : "success";
    if (worker.last === result) worker.repeated++;
    else {
      worker.last = result;
      worker.repeated = 1;
    }
    const needed = result === "failure" ? (worker.spec.failureThreshold ?? 3) : (worker.spec.successThreshold ?? 1);
    if (worker.repeated < needed) return true;
    this.#set(worker, id, result);
    if (result === "failure" && worker.kind !== "readiness") worker.onHold = true;
    return true;
  }

  async #probe(worker: Worker, podIp: string): Promise<ProbeOutcome | undefined> {
    const name = `${worker.kind[0]?.toUpperCase()}${worker.kind.slice(1)}`;
    const who = { name: worker.container.name, kind: "regular" as const };
    for (let attempt = 1; ; attempt++) {
      try {
        const outcome = await this.#runProbe(worker, podIp);
        this.#options.onProbe?.(
          worker.kind,
          outcome.result === "failure" ? "failed" : "successful",
          worker.pod,
          worker.container.name,
        );
        if (outcome.result === "failure") {
          this.#options.event(worker.pod, who, "Warning", "Unhealthy", `${name} probe failed: ${outcome.output}`);
        } else if (outcome.result === "warning") {
          this.#options.event(worker.pod, who, "Warning", "ProbeWarning", `${name} probe warning: ${outcome.output}`);
        }
        return outcome;
      } catch (err) {
        if (attempt < maxTries) continue;
        this.#options.event(worker.pod, who, "Warning", "Unhealthy", `${name} probe errored: ${messageOf(err)}`);
        return undefined;
      }
    }
  }

  async #runProbe(worker: Worker, podIp: string): Promise<ProbeOutcome> {
    const { spec, container, containerId } = worker;
    const timeoutSeconds = spec.timeoutSeconds ?? 1;
    if (spec.exec !== undefined) return probeExec(this.#options.runtime, containerId, spec.exec.command ?? [], timeoutSeconds);
    if (spec.httpGet !== undefined) {
      const { url, headers } = httpTarget(spec.httpGet, container, podIp);
      return probeHttp(url, headers, timeoutSeconds * 1000);
    }
    if (spec.tcpSocket !== undefined) {
      return probeTcp(spec.tcpSocket.host || podIp, portNumber(spec.tcpSocket.port, container), timeoutSeconds * 1000);
    }
    if (spec.grpc !== undefined && this.#options.grpcEnabled) {
      return probeGrpc(podIp, spec.grpc.port, spec.grpc.service ?? "", timeoutSeconds * 1000);
    }
    throw new Error(`missing probe handler for ${worker.pod.metadata.name}:${container.name}`);
  }
}

/** Statuses by container: each probe of thousands of containers looks for its own, every second until it has started. */
const byName = new WeakMap<readonly ContainerStatus[], ReadonlyMap<string, ContainerStatus>>();

function containerIn(status: PodStatus | undefined, name: string): ContainerStatus | undefined {
  const statuses = status?.containerStatuses;
  if (statuses === undefined) return undefined;
  return byName.getOrInsertComputed(statuses, () => new Map(statuses.map((one) => [one.name, one]))).get(name);
}

const keyOf = (uid: string, container: string, kind: ProbeKind): string => `${uid}/${container}/${kind}`;

const initial: Readonly<Record<ProbeKind, ProbeResult>> = { liveness: "success", readiness: "failure", startup: "unknown" };
/** Delay before the first check, which is cheap until the container runs. */
const firstDelayMs = 100;
/** Also the shortest period that the API allows. */
const idleMs = 1000;

function periodMs(spec: Probe): number {
  return (spec.periodSeconds ?? 10) * 1000;
}

function stripRuntime(containerId: string): string {
  const at = containerId.indexOf("://");
  return at < 0 ? containerId : containerId.slice(at + 3);
}
