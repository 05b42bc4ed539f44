import type { Client } from "@coxswain/apimachinery/client/client";
import { isForbidden, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { TokenRequest } from "@coxswain/apimachinery/objects/schema/kinds/authentication/v1";
import type {
  ConfigMap,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  configMaps,
  persistentVolumeClaims,
  persistentVolumes,
  secrets,
  serviceAccounts,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { IssuedToken, PodObjects, TokenRequestOptions } from "../pod/pod-objects.ts";

/** Deduplicates reads by many Pods; short, so that changes are visible at the next sync. */
const keepMs = 5_000;
const maxKept = 1_000;
/** Volumes and tokens of a running Pod are read again within minutes: what was not read for so long belongs to no running Pod. */
const unusedMs = 10 * 60_000;
const maxTokenAgeMs = 24 * 3600_000;
const tokenRefreshJitterMs = 10_000;

/** A cached object; the last successful read is used while the API server is unavailable. */
interface Kept<T extends KubeObject> {
  at: number;
  usedAt: number;
  object: Promise<T>;
  last: T | undefined;
}

/**
 * Reads objects from the API server with a short-lived cache.
 * Source: pkg/kubelet/util/manager, pkg/kubelet/token/token_manager.go
 */
export function newApiObjects(client: Client, clock: Clock): PodObjects {
  /** The least recently used first. */
  const kept = new Map<string, Kept<KubeObject>>();
  const tokens = new Map<string, { issued: IssuedToken; requestedAt: number; expiresAt: number }>();

  function read<T extends KubeObject>(ref: ResourceRef, namespace: string | undefined, name: string): Promise<T> {
    const key = `${ref.resource}/${namespace ?? ""}/${name}`;
    const now = clock.monotonic();
    const found = kept.get(key) as Kept<T> | undefined; // cast: the key names the resource, whose objects are of T
    kept.delete(key);
    if (found !== undefined && now - found.at < keepMs) {
      found.usedAt = now;
      kept.set(key, found);
      return found.object;
    }
    for (const [old, { usedAt }] of kept) {
      if (kept.size <= maxKept || now - usedAt < unusedMs) break;
      kept.delete(old);
    }
    const entry: Kept<T> = { at: now, usedAt: now, object: client.get<T>(ref, { namespace, name }), last: found?.last };
    entry.object = entry.object.then(
      (object) => {
        entry.last = object;
        return object;
      },
      (err) => {
        // Failures are not cached: the object may be created any time.
        entry.at = Number.NEGATIVE_INFINITY;
        const isGone = isNotFound(err) || isForbidden(err);
        if (isGone) kept.delete(key);
        if (isGone || entry.last === undefined) throw err;
        return entry.last;
      },
    );
    kept.set(key, entry);
    return entry.object;
  }

  return {
    configMap: (namespace, name) => named("configmap", name, read<ConfigMap>(configMaps, namespace, name)),
    secret: (namespace, name) => named("secret", name, read<Secret>(secrets, namespace, name)),
    claim: (namespace, name) => read<PersistentVolumeClaim>(persistentVolumeClaims, namespace, name),
    persistentVolume: (name) => read<PersistentVolume>(persistentVolumes, undefined, name),
    async serviceAccountToken(request) {
      const key = JSON.stringify(request);
      const now = clock.now();
      // An expired token must not be returned when its renewal fails.
      for (const [old, entry] of tokens) if (entry.expiresAt <= now) tokens.delete(old);
      const found = tokens.get(key);
      if (found !== undefined && !needsRefresh(found, now)) return found.issued;
      try {
        const made = await requestToken(client, request);
        const expiresAt = parseTime(made.status?.expirationTimestamp ?? "") ?? now + request.expirationSeconds * 1000;
        const issued = { token: made.status?.token ?? "", expirationTimestamp: made.status?.expirationTimestamp ?? "" };
        tokens.set(key, { issued, requestedAt: now, expiresAt });
        return issued;
      } catch (err) {
        if (found === undefined) throw err;
        return found.issued;
      }
    },
  };
}

/** Error messages use the singular: `configmap "x" not found`. */
async function named<T>(singular: string, name: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (err) {
    throw isNotFound(err) ? notFound({ group: "", resource: singular }, name) : err;
  }
}

function needsRefresh(token: { requestedAt: number; expiresAt: number }, now: number): boolean {
  const life = token.expiresAt - token.requestedAt;
  const jitter = Math.random() * tokenRefreshJitterMs;
  return now > token.requestedAt + life * 0.8 - jitter || now > token.requestedAt + maxTokenAgeMs - jitter;
}

function requestToken(client: Client, request: TokenRequestOptions): Promise<TokenRequest> {
  const body: TokenRequest = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: {},
    spec: {
      audiences: request.audience ? [request.audience] : [],
      expirationSeconds: request.expirationSeconds,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name: request.pod.name, uid: request.pod.uid },
    },
  };
  const { namespace, serviceAccount } = request;
  return client.create<TokenRequest>(serviceAccounts, body, { namespace, name: serviceAccount, subresource: "token" });
}

/** Standalone mode: no object exists. */
export const noObjects: PodObjects = {
  configMap: async (_, name) => Promise.reject(notFound({ group: "", resource: "configmap" }, name)),
  secret: async (_, name) => Promise.reject(notFound({ group: "", resource: "secret" }, name)),
  claim: async (_, name) => Promise.reject(notFound(persistentVolumeClaims, name)),
  persistentVolume: async (name) => Promise.reject(notFound(persistentVolumes, name)),
  serviceAccountToken: async ({ serviceAccount }) => Promise.reject(notFound(serviceAccounts, serviceAccount)),
};
