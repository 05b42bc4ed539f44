import type { Client } from "@coxswain/apimachinery/client/client";
import { discoverGroups } from "@coxswain/apimachinery/client/discovery";
import { parseWire } from "@coxswain/apimachinery/client/wire-json";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { genericServerResponse, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupResource, type GroupResource, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { parseDuration, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Status } from "@coxswain/apimachinery/objects/meta/types";
import type { CrossVersionObjectReference } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { ScaleClient } from "../../scale/scale-client.ts";

interface PodMetric {
  /** In thousandths (milli-units). */
  readonly value: number;
  /** End of the sampling window, in ms since the epoch. */
  readonly at: number;
  readonly windowMs: number;
}

/** Samples by Pod name. */
export type PodMetrics = Map<string, PodMetric>;

/**
 * Client of the resource, custom and external metrics APIs, which are optional and served through the aggregator.
 * Values are in thousandths. Methods reject with upstream's error text when the API fails or returns no metrics.
 * Source: pkg/controller/podautoscaler/metrics/client.go, k8s.io/metrics pkg/client
 */
export interface MetricsClient {
  /** @param container restricts the usage to this container; undefined: sum of all containers */
  resource(resource: string, of: PodsQuery, container: string | undefined, signal: AbortSignal): Promise<PodMetrics>;
  pods(metric: MetricQuery, of: PodsQuery, signal: AbortSignal): Promise<PodMetrics>;
  object(metric: MetricQuery, namespace: string, object: CrossVersionObjectReference, signal: AbortSignal): Promise<number>;
  external(metric: MetricQuery, namespace: string, signal: AbortSignal): Promise<number[]>;
}

interface PodsQuery {
  readonly namespace: string;
  readonly selector: LabelSelector;
}

/** A metric and the selector of its series. */
export interface MetricQuery {
  readonly name: string;
  readonly selector: LabelSelector;
}

interface MetricsClientOptions {
  readonly client: Client;
  readonly scales: ScaleClient;
  readonly clock: Clock;
  /** How long the discovered version of the custom metrics API is cached. */
  readonly cacheMs: number;
}

export function newMetricsClient({ client, scales, clock, cacheMs }: MetricsClientOptions): MetricsClient {
  const get = async <T>(path: string, query: Record<string, string>, of: GroupResource, signal: AbortSignal): Promise<T> => {
    const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
    const response = await client.raw("GET", search === "" ? path : `${path}?${search}`, { signal });
    const text = response.body.toString("utf8");
    if (response.status >= 200 && response.status < 300) return parseWire(text) as T; // cast: T names what the API serves at the path
    throw statusIn(text) ?? genericServerResponse(response.status, "get", of, "", text, 0, true);
  };
  const customBase = customMetricsPath(client, clock, cacheMs);
  const custom = async (
    pathOf: () => Promise<readonly string[]>,
    metric: MetricQuery,
    labelSelector: string,
    signal: AbortSignal,
  ): Promise<{ items: CustomMetric[] }> => {
    const base = await customBase(signal);
    const path = await pathOf();
    const parts = [...path, metric.name].map(encodeURIComponent);
    const of = { group: customGroup, resource: `${path.at(-2)}` };
    return get(`${base}/${parts.join("/")}`, { labelSelector, metricLabelSelector: String(metric.selector) }, of, signal);
  };
  const resourceOf = async (apiVersion: string, kind: string): Promise<string> => {
    try {
      return formatGroupResource(await scales.resourceOf(apiVersion, kind, "any version"));
    } catch (err) {
      const { group = "" } = parseGroupVersion(apiVersion) ?? {};
      throw new Error(`unable to map kind ${formatGroupResource({ group, resource: kind })} to resource: ${messageOf(err)}`);
    }
  };

  return {
    async resource(resource, { namespace, selector }, container, signal) {
      const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${encodeURIComponent(namespace)}/pods`;
      const of = { group: "metrics.k8s.io", resource: "pods" };
      const { items } = await nonEmptyList(
        "resource metrics API",
        get<{ items: PodUsage[] }>(path, { labelSelector: String(selector) }, of, signal),
      );
      return usageOf(items, resource, container, namespace);
    },
    async pods(metric, { namespace, selector }, signal) {
      const pathOf = async () => ["namespaces", namespace, "pods", "*"];
      const { items } = await nonEmptyList("custom metrics API", custom(pathOf, metric, String(selector), signal));
      return new Map(
        items.map(({ describedObject, value, timestamp, windowSeconds, window }) => [
          describedObject.name,
          {
            value: milli(value),
            at: parseTime(timestamp) ?? 0,
            windowMs: (windowSeconds ?? window ?? defaultWindowSeconds) * 1000,
          },
        ]),
      );
    },
    async object(metric, namespace, { apiVersion = "", kind, name }, signal) {
      const isNamespace = kind === "Namespace" && parseGroupVersion(apiVersion)?.group === "";
      const pathOf = async () =>
        // As upstream, a described Namespace is always the autoscaler's own.
        isNamespace ? ["namespaces", namespace, "metrics"] : ["namespaces", namespace, await resourceOf(apiVersion, kind), name];
      const { items } = await withApiError("custom metrics API", custom(pathOf, metric, "", signal));
      if (items.length !== 1) {
        const text = `the custom metrics API server returned ${items.length} results when we asked for exactly one`;
        throw new Error(`unable to fetch metrics from custom metrics API: ${text}`);
      }
      return milli(items[0]?.value);
    },
    async external(metric, namespace, signal) {
      const parts = ["namespaces", namespace, metric.name].map(encodeURIComponent);
      const path = `/apis/external.metrics.k8s.io/v1beta1/${parts.join("/")}`;
      const of = { group: "external.metrics.k8s.io", resource: metric.name };
      const { items } = await nonEmptyList(
        "external metrics API",
        get<{ items: { value: string }[] }>(path, { labelSelector: String(metric.selector) }, of, signal),
      );
      return items.map(({ value }) => milli(value));
    },
  };
}

/** metrics.k8s.io/v1beta1 PodMetrics */
interface PodUsage {
  readonly metadata: { readonly name: string };
  readonly timestamp: string;
  /** Go duration string. */
  readonly window: string;
  readonly containers?: readonly { readonly name: string; readonly usage: Readonly<Record<string, string>> }[];
}

/** custom.metrics.k8s.io MetricValue: v1beta2 writes `windowSeconds`, v1beta1 `window`. */
interface CustomMetric {
  readonly describedObject: { readonly name: string };
  readonly timestamp: string;
  readonly windowSeconds?: number;
  readonly window?: number;
  readonly value: string;
}

/** Window of custom metrics that do not specify one. */
const defaultWindowSeconds = 60;

function milli(value: string | undefined): number {
  return Quantity.parse(value ?? "0").milliValue();
}

/**
 * Sums up the usage per Pod. A Pod is omitted when one of its containers has no value.
 * @throws Error when the named container is missing
 */
function usageOf(items: readonly PodUsage[], resource: string, container: string | undefined, namespace: string): PodMetrics {
  const result: PodMetrics = new Map();
  for (const { metadata, timestamp, window, containers = [] } of items) {
    const wanted = container === undefined ? containers : containers.filter(({ name }) => name === container);
    const values = wanted.map(({ usage }) => (Object.hasOwn(usage, resource) ? usage[resource] : undefined));
    if (container !== undefined && wanted.length === 0) {
      const text = `container ${container} not present in metrics for pod ${namespace}/${metadata.name}`;
      throw new Error(`failed to get container metrics: ${text}`);
    }
    if (values.length === 0 || values.includes(undefined)) continue;
    const value = values.reduce((sum, text) => sum + milli(text), 0);
    result.set(metadata.name, { value, at: parseTime(timestamp) ?? 0, windowMs: parseDuration(window) ?? 0 });
  }
  return result;
}

/** @throws Error with the text before the message of the one that `work` throws */
export async function withErrorPrefix<T>(text: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (err) {
    throw new Error(`${text}: ${messageOf(err)}`, { cause: err });
  }
}

const withApiError = <T>(api: string, answer: Promise<T>): Promise<T> =>
  withErrorPrefix(`unable to fetch metrics from ${api}`, answer);

async function nonEmptyList<T extends { items: readonly unknown[] }>(api: string, answer: Promise<T>): Promise<T> {
  const list = await withApiError(api, answer);
  if (list.items.length === 0) throw new Error(`no metrics returned from ${api}`);
  return list;
}

function statusIn(text: string): StatusError | undefined {
  try {
    const value = parseWire(text);
    return isStatus(value) ? new StatusError(value) : undefined;
  } catch {
    return undefined; // not a Status, e.g. the error page of a proxy
  }
}

const isStatus = (value: unknown): value is Status => isJsonObject(value) && value["kind"] === "Status";

const customGroup = "custom.metrics.k8s.io";
/** In order of preference. */
const customVersions = ["v1beta2", "v1beta1"];

/** Base path of the custom metrics API: the server's preferred version if supported, otherwise the best version both support. */
function customMetricsPath(client: Client, clock: Clock, cacheMs: number): (signal: AbortSignal) => Promise<string> {
  let known: { readonly at: number; readonly path: string } | undefined;
  return async (signal) => {
    if (known !== undefined && clock.monotonic() - known.at < cacheMs) return known.path;
    const group = (await discoverGroups(client, { signal })).find(({ name }) => name === customGroup);
    if (group === undefined) throw new Error(`no custom metrics API (${customGroup}) registered`);
    const preferred = group.versions.slice(0, 1).find((version) => customVersions.includes(version));
    const version = preferred ?? customVersions.find((candidate) => group.versions.includes(candidate));
    if (version === undefined) throw new Error(`no known available metric versions found`);
    known = { at: clock.monotonic(), path: `/apis/${customGroup}/${version}` };
    return known.path;
  };
}
