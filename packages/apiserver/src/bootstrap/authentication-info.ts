/**
 * Publishes how this server authenticates requests, for aggregated servers, the controller manager and the scheduler, in the
 * config map extension-apiserver-authentication in kube-system.
 * Source: pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { ensure } from "./ensure.ts";

export interface AuthenticationInfo {
  /** PEM. */
  readonly clientCa: string | undefined;
  readonly requestHeader:
    | {
        /** PEM. */
        readonly ca: string;
        readonly allowedNames: readonly string[];
        readonly usernameHeaders: readonly string[];
        readonly groupHeaders: readonly string[];
        readonly extraHeaderPrefixes: readonly string[];
      }
    | undefined;
}

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** Merges `info` into the config map; does nothing when it is empty. */
export async function ensureAuthenticationInfo(client: Client, info: AuthenticationInfo, signal?: AbortSignal): Promise<void> {
  const data = dataOf(info);
  if (Object.keys(data).length === 0) return;
  const wanted: ConfigMap = { metadata: { namespace: "kube-system", name: "extension-apiserver-authentication" }, data };
  await ensure<ConfigMap>(
    client,
    configMaps,
    wanted,
    (existing) => {
      // Keep the CAs of other servers of the cluster: during a CA rotation both are trusted.
      const merged = { ...existing.data, ...data };
      for (const key of ["client-ca-file", "requestheader-client-ca-file"]) {
        const bundle = joinBundles(existing.data?.[key], data[key]);
        if (bundle !== undefined) merged[key] = bundle;
      }
      for (const [key, own] of Object.entries(data)) {
        if (!key.endsWith("-ca-file")) merged[key] = joinLists(existing.data?.[key], own);
      }
      return semanticEqual(existing.data, merged) ? undefined : { ...existing, data: merged };
    },
    signal,
  );
}

const resyncMs = 60_000;

/**
 * Updates the config map when the returned function is called, and once a minute to revert other changes.
 * @returns a function to call when the files have changed
 */
export function followAuthenticationInfo(options: {
  readonly client: Client;
  readonly info: () => AuthenticationInfo;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}): () => void {
  const { client, info, clock, log, signal } = options;
  let last = Promise.resolve();
  const publish = (): void => {
    last = last
      .then(() => ensureAuthenticationInfo(client, info(), signal))
      .catch((err: unknown) => {
        if (!signal.aborted) log.error("cannot publish the authentication configuration of this server, trying again", err);
      });
  };
  const timer = clock.every(resyncMs, publish);
  signal.addEventListener("abort", () => timer.cancel(), { once: true });
  return publish;
}

function dataOf({ clientCa, requestHeader }: AuthenticationInfo): Record<string, string> {
  return {
    ...(clientCa === undefined ? {} : { "client-ca-file": clientCa }),
    ...(requestHeader === undefined
      ? {}
      : {
          "requestheader-allowed-names": JSON.stringify(requestHeader.allowedNames),
          "requestheader-client-ca-file": requestHeader.ca,
          "requestheader-extra-headers-prefix": JSON.stringify(requestHeader.extraHeaderPrefixes),
          "requestheader-group-headers": JSON.stringify(requestHeader.groupHeaders),
          "requestheader-username-headers": JSON.stringify(requestHeader.usernameHeaders),
        }),
  };
}

function joinLists(existing: string | undefined, own: string): string {
  let others: unknown = [];
  try {
    others = JSON.parse(existing ?? "[]");
  } catch {
    // Unreadable values are overwritten.
  }
  // Cast: this server's own list.
  return JSON.stringify([...new Set([...(Array.isArray(others) ? others : []), ...(JSON.parse(own) as string[])])]);
}

function joinBundles(existing: string | undefined, own: string | undefined): string | undefined {
  if (existing === undefined || own === undefined) return own ?? existing;
  const blocks = (pem: string): string[] =>
    (pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map((block) => block.replace(/\r/g, ""));
  const known = blocks(existing);
  const missing = blocks(own).filter((block) => !known.includes(block));
  return missing.length === 0 ? existing : `${[...known, ...missing].join("\n")}\n`;
}
