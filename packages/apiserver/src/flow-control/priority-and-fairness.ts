import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { GaugeChild } from "@coxswain/apimachinery/process/metrics/registry";
import { ArrivingBodies, type Seat } from "../filters/arriving-bodies.ts";
import type { Filter, Handler } from "../filters/filter.ts";
import type { RequestMetrics } from "../filters/metrics.ts";
import { noSeat, tooManyRequests } from "../filters/too-many-requests.ts";
import { isReadOnly } from "../request/request-info.ts";
import type { ServerRequest } from "../request/server-request.ts";
import { type Classified, matchesRules } from "./flow-rules.ts";
import type { FlowControlMetrics, FlowMetrics } from "./metrics.ts";
import { type Configuration, type FlowSchema, type LevelPlan, type Limits, planFlowControl } from "./plan.ts";
import { QueueSet } from "./queue-set.ts";
import type { ReadWriteLoad, RequestKind } from "./read-write-load.ts";
import type { SampledShare } from "./sampled-share.ts";
import type { Ticket } from "./ticket.ts";
import { newWatchCounts, type WatchCounts } from "./watch-counts.ts";
import { estimateWork, maxSeats, type WorkFacts } from "./work-estimate.ts";

/**
 * Filter that dispatches requests by the seats of their priority level; the others wait in queues or get 429. A request
 * occupies its seats until it is answered or only waits for its client to read, and not while its body arrives slowly; a watch until its initial events are sent.
 * Other long-running requests are not limited.
 * Source: k8s.io/apiserver pkg/server/filters/priority-and-fairness.go
 */

interface PriorityAndFairnessOptions {
  readonly flowControl: FlowControl;
  /** Number of stored objects of a resource, when it was counted. */
  readonly storedObjects: WorkFacts["storedObjects"];
  readonly clock: Clock;
  readonly metrics: RequestMetrics;
  readonly load: ReadWriteLoad;
  /** Called with the flow schema of each request that gets 429. */
  readonly refused?: (request: ServerRequest, schema: string) => void;
}

/**
 * Filter that gives each request a flow and lets it pass when its flow has a seat; answers 429 when its queue is full or it
 * waited too long.
 */
export function priorityAndFairness(options: PriorityAndFairnessOptions): Filter {
  const { flowControl, storedObjects, clock, metrics } = options;
  const watches = newWatchCounts();
  const facts: WorkFacts = { storedObjects, watchers: (info) => watches.interestedIn(info) };
  const bodies = new ArrivingBodies(clock);
  const [readOnly, mutating] = [countsOf("readOnly", options), countsOf("mutating", options)];

  return (request, next) => {
    const isWatch = request.info.verb === "watch";
    if (request.longRunning && !isWatch) return next(request);
    const flow = flowControl.flowOf(request);
    request.exchange.setHeader("x-kubernetes-pf-flowschema-uid", flow.schemaUid);
    request.exchange.setHeader("x-kubernetes-pf-prioritylevel-uid", flow.levelUid);
    const counts = isReadOnly(request.info) ? readOnly : mutating;
    const run = isWatch ? watchTask(watches) : task;
    /** Takes seats once more, for a request whose body has arrived. */
    const acquire = async (): Promise<() => void> => {
      const ticket = enqueue(flow, request, facts);
      const runs = ticket?.state === "executing" || (ticket !== undefined && (await turnOf(ticket, request.signal)));
      try {
        request.throwIfAborted();
      } catch (err) {
        ticket?.finish();
        throw err;
      }
      if (!runs) {
        options.refused?.(request, flow.schema);
        throw noSeat(metrics, request);
      }
      counts.executing(1);
      return () => {
        counts.executing(-1);
        ticket?.finish();
      };
    };
    const execute = (finish: () => void): Promise<void> => {
      const startedMs = clock.monotonic();
      counts.executing(1);
      flow.counted.dispatched.inc();
      const finished = (): void => {
        counts.executing(-1);
        flow.counted.executionSeconds.observe((clock.monotonic() - startedMs) / 1000);
        finish();
      };
      const seats = new HeldSeats(finished, acquire);
      if (flow.queues !== undefined && !request.exchange.bodyIsReceived)
        request.receive = (body) => bodies.receive(body, request.exchange, seats);
      return run(request, next, seats);
    };
    if (flow.queues === undefined) return execute(nothing);
    const arrivalMs = clock.monotonic();
    const ticket = enqueue(flow, request, facts);
    // Every request of a limited level is counted, also one that is executed or refused at once.
    const decided = (runs: boolean): Promise<void> | void => {
      flow.counted.waited((clock.monotonic() - arrivalMs) / 1000, runs);
      if (runs && ticket !== undefined) return execute(() => ticket.finish());
      options.refused?.(request, flow.schema);
      refuse(metrics, request);
    };
    if (ticket === undefined) return decided(false);
    if (ticket.state === "executing") return decided(true);
    counts.waiting(1);
    return turnOf(ticket, request.signal).then((runs) => {
      counts.waiting(-1);
      return decided(runs);
    });
  };
}

function countsOf(kind: RequestKind, { metrics, load }: PriorityAndFairnessOptions) {
  const count = (gauge: GaugeChild, share: SampledShare) => (by: number) => {
    gauge.inc(by);
    share.add(by);
  };
  return {
    executing: count(metrics.inFlight.labels(kind), load("executing", kind)),
    waiting: count(metrics.inQueue.labels(kind), load("waiting", kind)),
  };
}

const nothing = (): void => {};

function enqueue({ schema, queues, counted, distinguisher }: Flow, request: ServerRequest, facts: WorkFacts): Ticket | undefined {
  const work = estimateWork(request, facts);
  counted.seats.observe(maxSeats(work));
  if (!isReadOnly(request.info)) counted.watchers.observe(facts.watchers(request.info));
  return queues?.start({ schema, flow: distinguisher(request), work, counted, requested: request });
}

function turnOf(ticket: Ticket, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const gone = (): void => ticket.cancel();
  ticket.decided = (runs) => {
    signal.removeEventListener("abort", gone);
    resolve(runs);
  };
  if (signal.aborted) gone();
  else signal.addEventListener("abort", gone, { once: true });
  return promise;
}

function refuse(metrics: RequestMetrics, request: ServerRequest): void {
  if (!request.exchange.headersSent) tooManyRequests(metrics, request);
}

/** The seats of one request, which it may give back early and take again. */
class HeldSeats implements Seat {
  #finish: (() => void) | undefined;
  readonly #acquire: () => Promise<() => void>;

  constructor(finish: () => void, acquire: () => Promise<() => void>) {
    this.#finish = finish;
    this.#acquire = acquire;
  }

  readonly release = (): void => {
    const finish = this.#finish;
    this.#finish = undefined;
    finish?.();
  };

  async acquire(): Promise<void> {
    this.#finish = await this.#acquire();
  }
}

type Task = (request: ServerRequest, next: Handler, seats: HeldSeats) => Promise<void>;

/** Releases the seats early when the response only waits for the client to read, since the rest is encoded on demand. */
const task: Task = async (request, next, seats) => {
  request.exchange.onUnread = seats.release;
  try {
    await next(request);
  } finally {
    seats.release();
  }
};

/**
 * Releases the seats when the watch waits for events or for its client to read. Until it ends it is counted as a watcher,
 * which raises the estimate of writes.
 */
const watchTask =
  (watches: WatchCounts): Task =>
  async (request, next, seats) => {
    const forget = watches.add(request.info);
    request.watchStarted = seats.release;
    request.exchange.onUnread = seats.release;
    try {
      await next(request);
    } finally {
      seats.release();
      forget();
    }
  };

/**
 * The flow schemas and priority levels in effect. A request belongs to the first matching schema.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/apf_controller.go
 */

interface Level {
  readonly plan: LevelPlan;
  /** undefined: exempt. */
  readonly queues: QueueSet | undefined;
  /** Its object is deleted, but requests are still queued or executing. */
  readonly quiescing: boolean;
}

/** The schema and the priority level of a request. */
interface Flow {
  readonly schema: string;
  readonly schemaUid: string;
  readonly levelUid: string;
  readonly queues: QueueSet | undefined;
  readonly counted: FlowMetrics;
  distinguisher(request: Classified): string;
}

export interface FlowControl {
  /** Applies a new configuration. Missing mandatory objects are added. */
  configure(wanted: Configuration): void;
  flowOf(request: Classified): Flow;
  /** Sorted by name. */
  levels(): Iterable<Level>;
}

interface FlowControlOptions {
  /**
   * The configuration in effect until the cluster's objects are known, and whenever they are missing. The catch-all schema matches any
   * request.
   */
  readonly mandatory: Configuration;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly metrics: FlowControlMetrics;
}

interface Rule extends Flow {
  readonly rules: NonNullable<FlowSchema["spec"]["rules"]>;
}

const catchAll = "catch-all";

/** Creates flow control with the mandatory configuration in effect. */
export function newFlowControl({ mandatory, limits, clock, metrics }: FlowControlOptions): FlowControl {
  let levels = new Map<string, Level>();
  let rules: readonly Rule[] = [];
  let fallback: Rule;

  function configure(wanted: Configuration): void {
    const before = levels;
    const gone = [...before.values()].filter(({ queues }) => queues?.idle === false).map(({ plan }) => plan);
    const plan = planFlowControl(wanted, mandatory, limits, gone);
    const alive = new Set([...wanted.levels, ...mandatory.levels].map(({ metadata }) => metadata.name));
    levels = new Map(
      plan.levels.map((level) => {
        const queues = queueSetFor(level, before.get(level.name)?.queues);
        const quiescing = !alive.has(level.name);
        if (queues !== undefined) queues.onIdle = quiescing ? () => configure(wanted) : undefined;
        return [level.name, { plan: level, queues, quiescing }];
      }),
    );
    for (const [name, { queues }] of before) if (levels.get(name)?.queues !== queues) queues?.retire();
    rules = plan.schemas.map((schema) => ruleOf(schema, levels.get(schema.spec.priorityLevelConfiguration.name)!));
    fallback = rules.find(({ schema }) => schema === catchAll)!;
  }

  /** Keeps an existing queue set, so that queued requests survive a change of limits. */
  function queueSetFor({ name, queueSet }: LevelPlan, existing: QueueSet | undefined): QueueSet | undefined {
    if (queueSet === undefined) return undefined;
    if (existing === undefined) return new QueueSet(queueSet, clock, metrics.level(name));
    existing.reconfigure(queueSet);
    return existing;
  }

  function ruleOf({ metadata: { name: schema = "", uid = "" }, spec }: FlowSchema, { plan, queues }: Level): Rule {
    let counted: FlowMetrics | undefined;
    return {
      schema,
      schemaUid: uid,
      levelUid: plan.uid,
      queues,
      rules: spec.rules ?? [],
      get counted() {
        counted ??= metrics.flow(plan.name, schema);
        return counted;
      },
      distinguisher: ({ info, user }) => {
        const type = spec.distinguisherMethod?.type;
        if (type === "ByUser") return user.name;
        return type === "ByNamespace" ? info.namespace : "";
      },
    };
  }

  configure({ levels: [], schemas: [] });
  return {
    configure,
    flowOf: (request) => rules.find((rule) => matchesRules(rule.rules, request)) ?? fallback,
    levels: () => [...levels.values()].sort((a, b) => (a.plan.name < b.plan.name ? -1 : 1)),
  };
}
