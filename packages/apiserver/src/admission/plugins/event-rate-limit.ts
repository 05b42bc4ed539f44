/**
 * Limits the rate of event writes per server, namespace, user, or source and object. Each limit has one token bucket per
 * key.
 * Source: plugin/pkg/admission/eventratelimit/{admission,limitenforcer}.go, apis/eventratelimit/validation
 */

import {
  type FieldError,
  formatFieldErrors,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { LRUCache } from "lru-cache";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";

interface Limit {
  type?: string;
  qps?: number;
  burst?: number;
  cacheSize?: number;
}

const keyOf: Readonly<Record<string, (attributes: AdmissionAttributes<Event>) => string>> = {
  Server: () => "",
  Namespace: ({ namespace }) => namespace,
  User: ({ user }) => user.name,
  SourceAndObject({ object }) {
    const { source, involvedObject: about } = object!;
    return [source?.component, source?.host, about?.kind, about?.namespace, about?.name, about?.uid, about?.apiVersion].join("");
  },
};
const defaultCacheSize = 4096;

/** Configuration: `limits: [{type, qps, burst, cacheSize}]`. @throws Error listing all problems in it. */
export function eventRateLimit(ctx: PluginContext): AdmissionPlugin<Event> {
  const { limits = [] }: { limits?: Limit[] } = ctx.configurationOf("EventRateLimit") ?? {};
  const problems = validate(limits);
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  const enforcers = limits.map((limit) => newEnforcer(limit, ctx.clock));
  return {
    name: "EventRateLimit",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    async validate(attributes) {
      const { kind, dryRun } = attributes;
      if (kind.group !== "" || kind.kind !== "Event" || dryRun) return;
      // Every limit takes a token, even when another one rejects the event.
      const refusal = enforcers.flatMap((accept) => accept(attributes) ?? []).at(-1);
      if (refusal !== undefined) throw tooMany(refusal);
    },
  };
}

/** @returns a function that takes a token; it returns the error text when the limit is exceeded. */
function newEnforcer(
  { type = "", qps = 0, burst = 0, cacheSize = 0 }: Limit,
  clock: Clock,
): (attributes: AdmissionAttributes<Event>) => string | undefined {
  // LRU cache of token buckets; the server limit has a single bucket.
  const buckets = new LRUCache<string, TokenBucket>({ max: cacheSize || defaultCacheSize });
  return (attributes) => {
    const key = keyOf[type]?.(attributes) ?? "";
    let bucket = buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: burst, filledAt: clock.monotonic() };
      buckets.set(key, bucket);
    }
    const now = clock.monotonic();
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.filledAt) / 1000) * qps);
    bucket.filledAt = now;
    if (bucket.tokens < 1) return `limit reached on type ${type} for key ${key}`;
    bucket.tokens--;
    return undefined;
  };
}

interface TokenBucket {
  tokens: number;
  filledAt: number;
}

function tooMany(message: string): StatusError {
  return new StatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `Too many requests: ${message}`,
    reason: "TooManyRequests",
    code: 429,
  });
}

function validate(limits: readonly Limit[]): FieldError[] {
  if (limits.length === 0) return [required("limits", "limits must have at least one item")];
  const seen = new Set<string>();
  return limits.flatMap(({ type = "", qps = 0, burst = 0, cacheSize = 0 }, i) => {
    const errors: FieldError[] = [];
    const path = `limits[${i}]`;
    if (!Object.hasOwn(keyOf, type)) errors.push(notSupported(`${path}.type`, type, Object.keys(keyOf).sort()));
    else if (seen.has(type)) errors.push({ type: "FieldValueDuplicate", field: `${path}.type`, badValue: type, detail: "" });
    seen.add(type);
    if (!(qps > 0)) errors.push(invalidValue(`${path}.qps`, qps, "must be positive"));
    if (!(burst > 0)) errors.push(invalidValue(`${path}.burst`, burst, "must be positive"));
    if (!(cacheSize >= 0)) errors.push(invalidValue(`${path}.cacheSize`, cacheSize, "must not be negative"));
    return errors;
  });
}
