/**
 * OpenAPI documents of aggregated servers: downloaded when an APIService is added, refreshed every minute (conditional on the
 * ETag), and merged into this server's documents.
 * Source: kube-aggregator pkg/controllers/openapi/controller.go, aggregator/aggregator.go, downloader.go
 */

import {
  type Controller,
  done,
  newController,
  type QueueMetrics,
  type Result,
} from "@coxswain/apimachinery/controller/controller";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { groupVersionPath } from "@coxswain/apimachinery/objects/meta/group-version";
import { sortedByName } from "@coxswain/apimachinery/objects/schema/openapi/definitions";
import type { OpenApiDocument } from "@coxswain/apimachinery/objects/schema/openapi/document";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { exponentialBackoff } from "@coxswain/apimachinery/workqueue/rate-limiters";
import { type ApiService, groupVersionOf, isAvailable, nameOf, serviceOf } from "../api-services.ts";
import type { AggregatorMetrics } from "../metrics.ts";
import type { Download, Fetch } from "./download.ts";
import { keepPaths, mergeSpecs } from "./merge.ts";
import { readSpec, type SpecDocument } from "./spec-document.ts";

interface AggregatedOpenApiOptions {
  readonly apiServices: SharedInformer<ApiService>;
  readonly fetch: Fetch;
  readonly metrics: AggregatorMetrics;
  /** Feature gate OpenAPIV3. */
  readonly v3: boolean;
  readonly queues?: QueueMetrics | undefined;
  readonly turns?: Turns | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Known {
  readonly etag: string;
  /** undefined when the server has none or it is invalid. */
  readonly spec: SpecDocument | undefined;
  readonly hasV3: boolean;
}

const soonMs = 1_000;
const refreshMs = 60_000;
const longestPauseMs = 3_600_000;

/** The OpenAPI documents of the aggregated servers, fetched again periodically and merged with our own. */
export class AggregatedOpenApi {
  readonly #options: AggregatedOpenApiOptions;
  readonly #known = new Map<string, Known>();
  readonly #turns: Turns;
  #generation = 0;
  readonly #controller: Controller;

  constructor(options: AggregatedOpenApiOptions) {
    this.#options = options;
    this.#turns = options.turns ?? new Turns();
    const { apiServices, clock, log } = options;
    this.#controller = newController({
      name: "open_api_aggregation_controller",
      sources: [
        {
          start: ({ enqueue, enqueueAfter }) => {
            const look = (apiService: ApiService): void => {
              if (serviceOf(apiService) !== undefined) enqueueAfter(nameOf(apiService), soonMs);
            };
            apiServices.addHandler({
              added: look,
              updated(old, now) {
                const becameAvailable = isAvailable(now) && !isAvailable(old);
                if (becameAvailable || JSON.stringify(old.spec) !== JSON.stringify(now.spec)) enqueueAfter(nameOf(now), soonMs);
              },
              deleted: (apiService) => enqueue(nameOf(apiService)),
            });
          },
          waitForSync: (signal) => apiServices.waitForSync(signal),
        },
      ],
      reconcile: (name) => this.#reconcile(name),
      limiter: exponentialBackoff(refreshMs, longestPauseMs),
      metrics: options.queues,
      turns: options.turns,
      clock,
      log,
    });
  }

  /** Changes whenever the result of `merge` changes. */
  get generation(): number {
    return this.#generation;
  }

  /** @returns a merged document; the argument is not modified. */
  *merge(own: OpenApiDocument): Steps<OpenApiDocument> {
    const { apiServices, clock, metrics } = this.#options;
    const others = byPriority(apiServices.lister.list()).flatMap((apiService) => this.#known.get(nameOf(apiService))?.spec ?? []);
    if (others.length === 0) return own;
    const startedMs = clock.monotonic();
    const whole: SpecDocument = {
      paths: new Map(Object.entries(own.paths)),
      definitions: new Map(Object.entries(own.definitions)),
    };
    let merged = whole;
    for (const other of others) merged = yield* mergeSpecs(merged, other);
    const { paths, definitions } = merged;
    metrics.openApiRegenerationSeconds.labels("update").set((clock.monotonic() - startedMs) / 1000);
    return {
      ...own,
      paths: sortedByName(Object.fromEntries(paths)),
      definitions: sortedByName(Object.fromEntries(definitions)),
    };
  }

  /** Roots of the OpenAPI v3 documents of aggregated servers: `apis/example.com/v1`. */
  v3Roots(): string[] {
    const { apiServices } = this.#options;
    return apiServices.lister
      .list()
      .flatMap((apiService) => (this.#known.get(nameOf(apiService))?.hasV3 === true ? [rootOf(apiService)] : []));
  }

  /** Fetches an OpenAPI v3 document from its server; undefined when it has none. */
  async v3(root: string, accept: string): Promise<Download | undefined> {
    const { apiServices, fetch } = this.#options;
    const apiService = apiServices.lister.list().find((one) => serviceOf(one) !== undefined && rootOf(one) === root);
    if (apiService === undefined) return undefined;
    return fetch(apiService, `/openapi/v3/${root}`, { accept });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #regenerated(apiService: string, reason: "add" | "update" | "delete"): void {
    const { metrics } = this.#options;
    this.#generation++;
    metrics.openApiRegenerations.labels(apiService, reason).inc();
  }

  async #reconcile(name: string): Promise<Result> {
    const { apiServices, fetch } = this.#options;
    const apiService = apiServices.lister.get(name);
    const before = this.#known.get(name);
    if (apiService === undefined || serviceOf(apiService) === undefined) {
      if (this.#known.delete(name)) this.#regenerated(name, "delete");
      return done;
    }
    const etag = before?.etag ?? "";
    const answer = await fetch(apiService, "/openapi/v2", {
      accept: "application/json",
      ...(etag === "" ? {} : { "if-none-match": etag }),
    });
    const hasV3 = this.#options.v3 && (await this.#offersV3(apiService));
    if (answer.code !== 304 && answer.code !== 200) throw new Error("OpenAPI spec does not exist");
    if (answer.code === 304 || answer.etag === etag) {
      if (before !== undefined && before.hasV3 !== hasV3) {
        this.#known.set(name, { ...before, hasV3 });
        this.#generation++;
      }
    } else {
      const spec = await this.#turns.run(specOf(answer.body));
      this.#known.set(name, { etag: answer.etag, spec, hasV3 });
      this.#regenerated(name, before === undefined ? "add" : "update");
    }
    return { requeueAfterMs: refreshMs };
  }

  /** Servers of older releases have no OpenAPI v3. */
  async #offersV3(apiService: ApiService): Promise<boolean> {
    const { fetch } = this.#options;
    try {
      const { code, body } = await fetch(apiService, "/openapi/v3", { accept: "application/json" });
      const { Paths: paths }: { Paths?: unknown } = JSON.parse(code === 200 ? body.toString("utf8") : "{}");
      return Array.isArray(paths) && paths.includes(rootOf(apiService));
    } catch {
      return false;
    }
  }
}

/** Without paths outside /apis: requests of these are not proxied to the server. */
function* specOf(body: Buffer): Steps<SpecDocument> {
  const document: unknown = JSON.parse(body.toString("utf8"));
  yield;
  const spec = yield* readSpec(document);
  return yield* keepPaths(spec, (path) => path.startsWith("/apis/"));
}

function rootOf(apiService: ApiService): string {
  return groupVersionPath(groupVersionOf(apiService)).slice(1);
}

/** Sorts by group priority (the highest of its versions), then version priority, then name. */
function byPriority(apiServices: readonly ApiService[]): ApiService[] {
  const groups = new Map<string, number>();
  for (const { spec } of apiServices) {
    const group = spec?.group ?? "";
    groups.set(group, Math.max(groups.get(group) ?? 0, spec?.groupPriorityMinimum ?? 0));
  }
  const rank = (one: ApiService): number[] => [groups.get(one.spec?.group ?? "") ?? 0, one.spec?.versionPriority ?? 0];
  return apiServices.toSorted((a, b) => {
    const [groupA = 0, versionA = 0] = rank(a);
    const [groupB = 0, versionB = 0] = rank(b);
    const isSameGroup = a.spec?.group === b.spec?.group;
    const difference = isSameGroup ? versionB - versionA : groupB - groupA;
    return difference !== 0 ? difference : nameOf(a) < nameOf(b) ? -1 : 1;
  });
}
