/**
 * Whose certificates a daemon believes: those of its own files, and where a file is not given those that the API server
 * publishes in the config map kube-system/extension-apiserver-authentication. Both are followed while the daemon runs.
 * Source: k8s.io/apiserver pkg/server/options/authentication.go, authentication_dynamic_request_header.go
 */
import type { Client } from "../../client/client.ts";
import type { Clock } from "../../clock/clock.ts";
import { isNotFound } from "../../errors/predicates.ts";
import { StatusError } from "../../errors/status-error.ts";
import { newInformerFactory } from "../../informers/factory.ts";
import type { Logger } from "../../logging/logger.ts";
import type { KubeObject } from "../../meta/types.ts";
import { configMaps } from "../../schema/kinds/resources.ts";
import { type CertificatePool, newCertificatePool, watchedCertificatePool } from "../authentication/certificate-pool.ts";
import type { FrontProxy } from "../authentication/request-header.ts";
import type { Trust } from "./authentication.ts";

export interface TrustFlags {
  readonly "client-ca-file": string;
  readonly "authentication-skip-lookup": boolean;
  readonly "authentication-tolerate-lookup-failure": boolean;
  readonly "requestheader-client-ca-file": string;
  readonly "requestheader-allowed-names": readonly string[];
  readonly "requestheader-username-headers": readonly string[];
  readonly "requestheader-group-headers": readonly string[];
  readonly "requestheader-extra-headers-prefix": readonly string[];
}

export interface TrustOptions {
  readonly flags: TrustFlags;
  /** Reads the cluster's settings; undefined: there is nobody to ask. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends following. */
  readonly signal: AbortSignal;
}

const namespace = "kube-system";
const name = "extension-apiserver-authentication";
const lookUpMs = 10_000;

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

/** @throws Error when a file is none, or the look-up fails and may not. */
export async function openTrust(options: TrustOptions): Promise<Trust> {
  const { flags, client, log } = options;
  const own = { clientCa: clientCaOf(options), frontProxy: frontProxyOf(options) };
  const missing = own.clientCa === undefined || own.frontProxy === undefined;
  if (!missing || flags["authentication-skip-lookup"]) return trustOf(own, undefined);
  if (client === undefined) {
    log.warn("no authentication-kubeconfig: what is missing cannot be looked up, so some client certificates will not count", {
      configmap: `${namespace}/${name}`,
    });
    return trustOf(own, undefined);
  }
  const published = newPublishedTrust(log);
  try {
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(lookUpMs)]);
    published.read(await client.get<ConfigMap>(configMaps, { namespace, name }, { signal }));
  } catch (err) {
    // An API server that is not there yet will be: daemons are started together. Until then only the own files count.
    const refused = err instanceof StatusError && !isNotFound(err);
    if (refused && !flags["authentication-tolerate-lookup-failure"]) {
      throw new Error(`unable to load configmap based request-header-client-ca-file: ${(err as Error).message}`, { cause: err });
    }
    if (!isNotFound(err)) {
      log.warn("the cluster's authentication configuration cannot be looked up: all requests may be anonymous until it can", {
        err: String(err),
      });
    }
  }
  follow(options, client, published);
  return trustOf(own, published);
}

function trustOf(own: { clientCa?: CertificatePool | undefined; frontProxy?: FrontProxy | undefined }, other?: Trust): Trust {
  return {
    clientCa: () => own.clientCa ?? other?.clientCa(),
    frontProxy: () => own.frontProxy ?? other?.frontProxy(),
  };
}

function clientCaOf({ flags, clock, signal }: TrustOptions): CertificatePool | undefined {
  return flags["client-ca-file"] === "" ? undefined : fileOf(flags["client-ca-file"], clock, signal);
}

function frontProxyOf({ flags, clock, signal }: TrustOptions): FrontProxy | undefined {
  if (flags["requestheader-client-ca-file"] === "") return undefined;
  return {
    pool: fileOf(flags["requestheader-client-ca-file"], clock, signal),
    allowedNames: flags["requestheader-allowed-names"],
    usernameHeaders: flags["requestheader-username-headers"],
    groupHeaders: flags["requestheader-group-headers"],
    extraHeaderPrefixes: flags["requestheader-extra-headers-prefix"],
  };
}

function fileOf(path: string, clock: Clock, signal: AbortSignal): CertificatePool {
  const pool = watchedCertificatePool(path, undefined, clock);
  signal.addEventListener("abort", () => pool.close(), { once: true });
  return pool;
}

function follow({ clock, log, signal }: TrustOptions, client: Client, published: PublishedTrust): void {
  const informers = newInformerFactory(client, { log, clock, namespace });
  const informer = informers.for<ConfigMap>(configMaps, { fieldSelector: `metadata.name=${name}` });
  informer.addHandler({
    added: (object) => published.read(object),
    updated: (_, object) => published.read(object),
    deleted: () => {}, // what was trusted last stays: an accident must not lock everybody out
  });
  informers.start(signal);
}

interface PublishedTrust extends Trust {
  read(object: ConfigMap): void;
}

/** What the config map says; an entry that cannot be read leaves what was. */
function newPublishedTrust(log: Logger): PublishedTrust {
  let clientCa: ReturnType<typeof newCertificatePool> | undefined;
  let proxyCa: ReturnType<typeof newCertificatePool> | undefined;
  let frontProxy: FrontProxy | undefined;
  const poolOf = (pool: typeof clientCa, bundle: string | undefined, what: string): typeof clientCa => {
    if (bundle === undefined || bundle === "") return undefined;
    if (pool === undefined) return newCertificatePool(bundle, what);
    pool.replace(bundle);
    return pool;
  };
  return {
    clientCa: () => clientCa,
    frontProxy: () => frontProxy,
    read({ data = {} }) {
      try {
        clientCa = poolOf(clientCa, data["client-ca-file"], "client-ca-file");
        proxyCa = poolOf(proxyCa, data["requestheader-client-ca-file"], "requestheader-client-ca-file");
        frontProxy = proxyCa && {
          pool: proxyCa,
          allowedNames: listOf(data["requestheader-allowed-names"]),
          usernameHeaders: listOf(data["requestheader-username-headers"]),
          groupHeaders: listOf(data["requestheader-group-headers"]),
          extraHeaderPrefixes: listOf(data["requestheader-extra-headers-prefix"]),
        };
      } catch (err) {
        log.error("the cluster's authentication configuration is not usable", err, { configmap: `${namespace}/${name}` });
      }
    },
  };
}

function listOf(text: string | undefined): string[] {
  if (text === undefined || text === "") return [];
  const list: unknown = JSON.parse(text);
  if (!Array.isArray(list) || !list.every((item) => typeof item === "string")) throw new Error(`not a list of strings: ${text}`);
  return list;
}
