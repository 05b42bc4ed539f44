/**
 * Queries a backend whether a pod's images are allowed. Responses are cached; `defaultAllow` decides when the backend
 * fails.
 * Source: plugin/pkg/admission/imagepolicy/{admission,config}.go
 */

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import { parseKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { formatDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { LRUCache } from "lru-cache";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";

interface Configuration {
  kubeConfigFile?: string;
  /** Seconds. */
  allowTTL?: number;
  denyTTL?: number;
  /** Milliseconds. */
  retryBackoff?: number;
  defaultAllow?: boolean;
}

interface Verdict {
  readonly allowed: boolean;
  readonly reason: string;
  readonly auditAnnotations: Readonly<Record<string, string>>;
}

const auditPrefix = "imagepolicywebhook.image-policy.k8s.io/";

const attempts = 5;
const requestTimeoutMs = 30_000;
const mostAnswers = 1024;

/** Configuration: `imagePolicy: {kubeConfigFile, allowTTL, denyTTL, retryBackoff, defaultAllow}`. @throws Error */
export function imagePolicyWebhook(ctx: PluginContext): AdmissionPlugin<Pod> {
  const configuration = ctx.configurationOf("ImagePolicyWebhook");
  if (configuration === undefined) throw new Error("no config specified");
  const { imagePolicy = {} }: { imagePolicy?: Configuration } = configuration ?? {};
  const allowTtlMs = bounded(imagePolicy.allowTTL, ttlBounds, 300_000);
  const denyTtlMs = bounded(imagePolicy.denyTTL, ttlBounds, 30_000);
  const backoffMs = bounded(imagePolicy.retryBackoff, backoffBounds, 500);
  if (!imagePolicy.kubeConfigFile) throw new Error("invalid configuration: no configuration has been provided");
  const path = imagePolicy.kubeConfigFile;
  const config = parseKubeconfig(readFileSync(path, "utf8"), { directory: dirname(path) });
  const client = newClient({ ...config, qps: -1, userAgent: config.userAgent ?? "kube-apiserver" });
  const url = new URL(config.host).pathname === "/" ? "/" : "";
  // Without `ttlResolution` each look starts a timer of 1 ms.
  const answers = new LRUCache<string, Verdict>({ max: mostAnswers, ttlResolution: 0 });

  const review = async (spec: object, signal: AbortSignal): Promise<Verdict> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await post(client, url, spec, signal);
      } catch (err) {
        signal.throwIfAborted();
        if (attempt >= attempts || !mayPass(err)) throw err;
        await ctx.clock.sleep(backoffMs * 1.5 ** (attempt - 1), signal);
      }
    }
  };

  return {
    name: "ImagePolicyWebhook",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    async validate(attributes) {
      const spec = question(attributes);
      if (spec === undefined) return;
      const key = JSON.stringify(spec);
      let verdict = answers.get(key);
      if (verdict === undefined) {
        try {
          verdict = await review(spec, attributes.signal);
        } catch (err) {
          ctx.log
            .v(2)
            ?.info("error contacting the image policy webhook", { error: String(err), allowed: imagePolicy.defaultAllow });
          if (imagePolicy.defaultAllow === true) {
            const { metadata } = attributes.object!;
            metadata.annotations = { ...metadata.annotations, "alpha.image-policy.k8s.io/failed-open": "true" };
            attributes.annotate(`${auditPrefix}failed-open`, "true");
            return;
          }
          throw refuse(attributes, messageOf(err));
        }
        const ttl = verdict.allowed ? allowTtlMs : denyTtlMs;
        if (ttl > 0) answers.set(key, verdict, { ttl });
      }
      for (const [name, value] of Object.entries(verdict.auditAnnotations)) attributes.annotate(auditPrefix + name, value);
      if (verdict.allowed) return;
      throw refuse(
        attributes,
        verdict.reason === ""
          ? "one or more images rejected by webhook backend"
          : `image policy webhook backend denied one or more images: ${verdict.reason}`,
      );
    },
  };
}

/** The ImageReview for the write; undefined when the write is not subject to image policy. */
function question({ resource, subresource, object, namespace }: AdmissionAttributes<Pod>): object | undefined {
  if (resource.group !== "" || resource.resource !== "pods") return undefined;
  const { spec, metadata } = object!;
  let containers: readonly { image?: string }[];
  if (subresource === "") containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  else if (subresource === "ephemeralcontainers") containers = spec?.ephemeralContainers ?? [];
  else return undefined;
  const annotations = Object.entries(metadata?.annotations ?? {}).filter(([key]) => key.includes(".image-policy.k8s.io/"));
  return {
    containers: containers.map(({ image }) => (image ? { image } : {})),
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
    ...(namespace !== "" && { namespace }),
  };
}

async function post(client: Client, path: string, spec: object, signal: AbortSignal): Promise<Verdict> {
  const review = { kind: "ImageReview", apiVersion: "imagepolicy.k8s.io/v1alpha1", metadata: { creationTimestamp: null }, spec };
  const { status, body } = await client.raw("POST", path, {
    headers: { accept: "application/json, */*", "content-type": "application/json" },
    body: JSON.stringify({ ...review, status: { allowed: false } }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeoutMs)]),
  });
  if (status < 200 || status >= 300) throw new BackendError(status);
  const answer: { status?: Partial<Verdict> } = parseJson(body) ?? {};
  const { allowed, reason = "", auditAnnotations = {} } = answer.status ?? {};
  return { allowed: allowed === true, reason: String(reason), auditAnnotations };
}

class BackendError extends Error {
  readonly code: number;
  constructor(code: number) {
    super(`Error contacting webhook: ${code}`);
    this.code = code;
  }
}

function mayPass(err: unknown): boolean {
  return err instanceof BackendError && (err.code >= 500 || err.code === 429);
}

interface Bounds {
  readonly unitMs: number;
  readonly leastMs: number;
  readonly mostMs: number;
}
const ttlBounds: Bounds = { unitMs: 1000, leastMs: 1000, mostMs: 1_800_000 };
const backoffBounds: Bounds = { unitMs: 1, leastMs: 1, mostMs: 300_000 };

/** 0 or unset selects the default, -1 selects zero. @throws Error when out of bounds. */
function bounded(value: number | undefined, { unitMs, leastMs, mostMs }: Bounds, usualMs: number): number {
  if (value === undefined || value === 0) return usualMs;
  if (value === -1) return 0;
  const ms = value * unitMs;
  if (ms >= leastMs && ms <= mostMs) return ms;
  const [least, most, given] = [leastMs, mostMs, ms].map(formatDuration);
  throw new Error(`valid value is between ${least} and ${most}, got ${given}`);
}
