/**
 * Maintains an APIService for each local group version, which provides its order in discovery. Built-in ones
 * (`automanaged=onstart`) are reconciled once after startup; later deletions and changes by users are respected. Those of
 * custom resources (`automanaged=true`) are reconciled continuously. APIServices without the label are not touched.
 * Source: kube-aggregator pkg/controllers/autoregister/autoregister_controller.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { done, newController, type QueueMetrics, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { apiServices as apiServicesRef } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type ApiService, isAvailable, nameOf } from "./api-services.ts";
import { customResourcePriorities, type Priorities, prioritiesOf } from "./priorities.ts";

export interface Autoregistration {
  /** Registers a group version of custom resources; idempotent. */
  add(groupVersion: GroupVersion): void;
  remove(groupVersion: GroupVersion): void;
  /**
   * @param known resolves when all group versions of existing custom resources have been added; until then no APIService may
   *   be deleted as obsolete
   */
  run(known: Promise<void>, signal: AbortSignal): Promise<void>;
  /** Names of built-in APIServices that have not been seen as available since startup. */
  missing(): string[];
}

interface AutoregistrationOptions {
  readonly client: Client;
  readonly apiServices: SharedInformer<ApiService>;
  /** Group versions served without custom resources. */
  readonly builtIn: readonly GroupVersion[];
  readonly queues?: QueueMetrics | undefined;
  readonly turns?: Turns | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

const label = "kube-aggregator.kubernetes.io/automanaged";
type Managed = "onstart" | "true" | undefined;
const workers = 5;

export function newAutoregistration(options: AutoregistrationOptions): Autoregistration {
  const { client, apiServices, builtIn, queues, turns, clock, log } = options;
  const wanted = new Map<string, ApiService>();
  for (const groupVersion of builtIn) {
    const priorities = prioritiesOf(groupVersion);
    if (priorities !== undefined) wanted.set(nameFor(groupVersion), anApiService(groupVersion, priorities, "onstart"));
  }
  const missing = new Set(wanted.keys());
  const atStart = new Set<string>();
  /** Names reconciled since startup. */
  const settled = new Set<string>();

  const seen = (apiService: ApiService): void => {
    if (isAvailable(apiService)) missing.delete(nameOf(apiService));
  };
  apiServices.addHandler({ added: seen, updated: (_old, now) => seen(now) });

  const controller = newController({
    name: "autoregister",
    sources: [enqueueSelf(apiServices)],
    async reconcile(name, signal): Promise<Result> {
      const current = apiServices.lister.get(name);
      const step = nextStep({ wanted: wanted.get(name), current, wasThere: atStart.has(name), isDone: settled.has(name) });
      await take(client, step, current, signal);
      settled.add(name);
      return done;
    },
    workers,
    metrics: queues,
    turns,
    clock,
    log,
  });

  return {
    add(groupVersion) {
      const name = nameFor(groupVersion);
      wanted.set(name, anApiService(groupVersion, customResourcePriorities, "true"));
      controller.enqueue(name);
    },
    remove(groupVersion) {
      const name = nameFor(groupVersion);
      wanted.delete(name);
      controller.enqueue(name);
    },
    async run(known, signal) {
      await known;
      await apiServices.waitForSync(signal);
      for (const apiService of apiServices.lister.list()) atStart.add(nameOf(apiService));
      for (const name of wanted.keys()) controller.enqueue(name);
      await controller.run(signal);
    },
    missing: () => [...missing].sort(),
  };
}

type Step =
  | { readonly type: "nothing" }
  | { readonly type: "create" | "update"; readonly object: ApiService }
  | { readonly type: "delete"; readonly object: ApiService };

const nothing: Step = { type: "nothing" };

/**
 * Pure: the action for one APIService.
 * @param wasThere it existed at startup
 * @param isDone it was reconciled since startup
 */
export function nextStep(state: {
  readonly wanted: ApiService | undefined;
  readonly current: ApiService | undefined;
  readonly wasThere: boolean;
  readonly isDone: boolean;
}): Step {
  const { wanted, current, wasThere, isDone } = state;
  if (wanted !== undefined && managed(wanted) === "onstart" && isDone) return nothing;
  if (current === undefined) return wanted === undefined ? nothing : { type: "create", object: wanted };
  const how = managed(current);
  if (how === undefined) return nothing;
  if (how === "onstart" && (!wasThere || isDone)) return nothing;
  if (wanted === undefined) return { type: "delete", object: current };
  return semanticEqual(current.spec, wanted.spec) ? nothing : { type: "update", object: { ...current, spec: wanted.spec } };
}

/** Conflicts with other writers are ignored: their write triggers an event, which enqueues the key again. */
async function take(client: Client, step: Step, current: ApiService | undefined, signal: AbortSignal): Promise<void> {
  try {
    if (step.type === "create") await client.create<ApiService>(apiServicesRef, step.object, { signal });
    if (step.type === "update") await client.update<ApiService>(apiServicesRef, step.object, { signal });
    if (step.type === "delete") {
      const uid = current?.metadata.uid;
      await client.delete(apiServicesRef, { name: nameOf(step.object) }, { ...(uid && { preconditions: { uid } }), signal });
    }
  } catch (err) {
    if (!isAlreadyExists(err) && !isNotFound(err) && !isConflict(err)) throw err;
  }
}

function managed({ metadata }: ApiService): Managed {
  const value = metadata.labels?.[label];
  return value === "onstart" || value === "true" ? value : undefined;
}

function nameFor({ group, version }: GroupVersion): string {
  return `${version}.${group}`;
}

function anApiService({ group, version }: GroupVersion, priorities: Priorities, how: "onstart" | "true"): ApiService {
  return {
    metadata: { name: nameFor({ group, version }), labels: { [label]: how } },
    spec: { group, version, ...priorities },
  };
}
