import type { Client } from "@coxswain/apimachinery/client/client";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { behaviourOf, type PodBehaviour, type PodRule, ruleOf } from "./pod-rules.ts";
import { afterEnd, backOffMs, type PodState, statusOf } from "./pod-state.ts";

interface FakePodOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly rules: () => readonly PodRule[];
  /** True while its node is silent. */
  readonly isSilent: () => boolean;
}

const retryMs = 200;
/** A pod deleted without a grace period is removed by the API server itself, before a kubelet has stopped its containers. */
const removedByServerMs = 2_000;

/** One Pod on a fake node: changes its state by timers, and writes each state to the API. */
export class FakePod {
  readonly #options: FakePodOptions;
  readonly #hostIP: string;
  #pod: Pod;
  #behaviour: PodBehaviour | undefined;
  #state: PodState;
  /** Timer of the next spontaneous state change. */
  #timer: Timer | undefined;
  #retry: Timer | undefined;
  /** Timer of `spec.activeDeadlineSeconds`. */
  #deadline: Timer | undefined;
  #isWriting = false;
  #isDue = false;
  #isStopping = false;
  #isStopped = false;

  constructor(options: FakePodOptions, pod: Pod, hostIP: string, podIP: string) {
    this.#options = options;
    this.#pod = pod;
    this.#hostIP = hostIP;
    this.#state = { phase: "starting", podIP, restarts: 0, startedMs: 0, waits: undefined, last: undefined, isOverdue: false };
  }

  /** Called for each new version of the Pod in the API. */
  changed(pod: Pod): void {
    this.#pod = pod;
    const { phase } = pod.status ?? {};
    if (pod.metadata.deletionTimestamp) this.#terminate();
    else if (phase === "Succeeded" || phase === "Failed") this.#cancel();
    else if (this.#behaviour !== undefined) this.#refresh();
    else this.#begin(behaviourOf(ruleOf(pod, this.#options.rules()), pod.spec.restartPolicy ?? "Always"));
    this.#awaitDeadline();
  }

  /** Restarts the deadline's timer from the status's start time, since an update may have moved the deadline. */
  #awaitDeadline(): void {
    this.#deadline?.cancel();
    const { spec, status } = this.#pod;
    const started = parseTime(status?.startTime ?? "");
    if (spec.activeDeadlineSeconds === undefined || started === undefined || this.#isStopping || this.#state.phase === "ended")
      return;
    const { clock } = this.#options;
    const leftMs = started + spec.activeDeadlineSeconds * 1000 - clock.now();
    this.#deadline = clock.after(Math.max(leftMs, 0), () => this.#exceed());
  }

  #exceed(): void {
    if (this.#isStopping || this.#state.phase === "ended") return;
    this.#cancel();
    const { phase, startedMs, last } = this.#state;
    const isRunning = phase === "running" || phase === "ready";
    const killed = { exitCode: 137, reason: undefined, startedMs, endedMs: this.#options.clock.now() };
    this.#enter({ phase: "ended", last: isRunning ? killed : last, isOverdue: true });
  }

  #begin(behaviour: PodBehaviour): void {
    this.#behaviour = behaviour;
    const { waits, startMs } = behaviour;
    if (waits !== undefined) this.#enter({ phase: "waiting", waits });
    else this.#after(startMs, () => this.#run());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#deadline?.cancel();
    this.#retry?.cancel();
  }

  #run(): void {
    const { readyMs, ends } = this.#behaviour as PodBehaviour;
    const startedMs = this.#options.clock.now();
    const end = (): void => {
      if (ends !== undefined) this.#after(ends.afterMs, () => this.#end(ends.exitCode, ends.reason));
    };
    const beReady = (): void => {
      this.#enter({ phase: "ready", startedMs, waits: undefined });
      end();
    };
    if (readyMs === 0) {
      beReady();
      return;
    }
    this.#enter({ phase: "running", startedMs, waits: undefined });
    if (readyMs === undefined) end();
    else if (ends !== undefined && ends.afterMs <= readyMs) end();
    else this.#after(readyMs, beReady);
  }

  #end(exitCode: number, reason: string | undefined): void {
    const { startedMs, restarts } = this.#state;
    const last = { exitCode, reason, startedMs, endedMs: this.#options.clock.now() };
    const phase = afterEnd(this.#pod.spec.restartPolicy ?? "Always", exitCode);
    if (phase === "ended") {
      this.#enter({ phase, last });
      return;
    }
    const delayMs = backOffMs(restarts);
    const message = `back-off ${delayMs / 1000}s restarting failed container`;
    this.#enter({ phase, last, waits: { reason: "CrashLoopBackOff", message } });
    this.#after(delayMs, () => {
      this.#state = { ...this.#state, restarts: restarts + 1 };
      this.#run();
    });
  }

  #terminate(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#cancel();
    const { stopMs = 0 } = this.#behaviour ?? {};
    const isForced = this.#pod.metadata.deletionGracePeriodSeconds === 0;
    this.#after(isForced ? Math.max(stopMs, removedByServerMs) : stopMs, () => void this.#remove());
  }

  async #remove(): Promise<void> {
    const { namespace, name = "", uid } = this.#pod.metadata;
    if (this.#options.isSilent()) {
      this.#again(() => void this.#remove());
      return;
    }
    try {
      await this.#options.client.delete(
        pods,
        { namespace, name },
        { gracePeriodSeconds: 0, ...(uid && { preconditions: { uid } }) },
      );
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) this.#again(() => void this.#remove());
    }
  }

  /** Writes the status again when another writer's change made it wrong, for example a readiness gate. */
  #refresh(): void {
    const { readinessGates } = this.#pod.spec;
    if (this.#state.phase === "ready" && readinessGates !== undefined) {
      const wanted = statusOf(this.#pod, this.#state, this.#hostIP, this.#options.clock.now());
      const readyOf = (status: Partial<Pod["status"] & object> | undefined) =>
        status?.conditions?.find(({ type }) => type === "Ready")?.status;
      if (readyOf(wanted) !== readyOf(this.#pod.status)) void this.#write();
    }
  }

  #enter(change: Partial<PodState>): void {
    this.#state = { ...this.#state, ...change };
    void this.#write();
  }

  /** Writes are sequential; the latest state is written last. */
  async #write(): Promise<void> {
    if (this.#isStopped) return;
    if (this.#isWriting) {
      this.#isDue = true;
      return;
    }
    this.#isWriting = true;
    this.#isDue = false;
    const { client, clock, log, isSilent } = this.#options;
    const { namespace, name = "", uid } = this.#pod.metadata;
    try {
      if (isSilent()) throw new Error("the node is silent");
      const status = statusOf(this.#pod, this.#state, this.#hostIP, clock.now());
      const body = { metadata: { uid }, status };
      this.#pod = await client.patch<Pod>(pods, { namespace, name, subresource: "status" }, { type: "strategic", body });
    } catch (err) {
      if (!isNotFound(err)) {
        log.v(2)?.info("cannot read a pod's state yet", { pod: `${namespace}/${name}`, err: String(err) });
        this.#again(() => void this.#write());
      }
    } finally {
      this.#isWriting = false;
    }
    if (this.#isDue) await this.#write();
  }

  #again(act: () => void): void {
    if (this.#isStopped) return;
    this.#retry?.cancel();
    this.#retry = this.#options.clock.after(retryMs, act);
  }

  #after(delayMs: number, act: () => void): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (delayMs === 0) act();
    else
      this.#timer = this.#options.clock.after(delayMs, () => {
        this.#timer = undefined;
        act();
      });
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
