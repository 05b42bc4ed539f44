/**
 * The authorities a component trusts: those of its files or, where a file is not given, those published in the ConfigMap
 * kube-system/extension-apiserver-authentication. Both are followed at runtime.
 * Source: k8s.io/apiserver pkg/server/options/authentication.go, authentication_dynamic_request_header.go
 */
import type { Client } from "../../client/client.ts";
import { waitForServer } from "../../controller/wait-for-server.ts";
import { newBackoff } from "../../informers/backoff.ts";
import { newInformerFactory } from "../../informers/factory.ts";
import { messageOf } from "../../objects/errors/message.ts";
import { isNotFound } from "../../objects/errors/predicates.ts";
import { StatusError } from "../../objects/errors/status-error.ts";
import type { KubeObject } from "../../objects/meta/types.ts";
import { configMaps } from "../../objects/schema/kinds/resources.ts";
import type { Clock } from "../../process/clock/clock.ts";
import type { Logger } from "../../process/logging/logger.ts";
import type { FrontProxy } from "../authentication/request-header.ts";
import { type CertificatePool, newCertificatePool, watchedCertificatePool } from "../authentication/x509.ts";
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

interface TrustOptions {
  readonly flags: TrustFlags;
  /** Client that reads the ConfigMap; undefined: only files are used. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Stops following files and the ConfigMap. */
  readonly signal: AbortSignal;
}

const namespace = "kube-system";
const name = "extension-apiserver-authentication";
/** Time limit of one attempt. */
const lookUpMs = 10_000;
/** Backoff between attempts on a ready API server. */
const retry = { initialMs: 200, maxMs: 5_000, factor: 2, jitter: 0.2, resetAfterMs: Number.POSITIVE_INFINITY };

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

interface OpenedTrust extends Trust {
  /**
   * Resolves when the ConfigMap was read, is not needed, or its failure is tolerated; rejects when a ready API server refuses
   * access and --authentication-tolerate-lookup-failure is off.
   */
  readonly lookedUp: Promise<void>;
}

/**
 * Makes one attempt to read the ConfigMap before returning. If the API server is unavailable or not ready, further attempts run
 * in the background; until then only the local files count.
 * @throws Error for an invalid file
 */
export async function openTrust(options: TrustOptions): Promise<OpenedTrust> {
  const { flags, client, log, signal } = options;
  const own = { clientCa: clientCaOf(options), frontProxy: frontProxyOf(options) };
  const missing = own.clientCa === undefined || own.frontProxy === undefined;
  const without = { ...trustOf(own, undefined), lookedUp: Promise.resolve() };
  if (!missing || flags["authentication-skip-lookup"]) return without;
  if (client === undefined) {
    log.warn(
      "--authentication-kubeconfig is not set: settings that are missing cannot be read from the cluster, and some client certificates will be refused",
      {
        configmap: `${namespace}/${name}`,
      },
    );
    return without;
  }
  const published = newPublishedTrust(log);
  const lookUp = async (): Promise<unknown> => {
    try {
      const attempt = AbortSignal.any([signal, AbortSignal.timeout(lookUpMs)]);
      published.read(await client.get<ConfigMap>(configMaps, { namespace, name }, { signal: attempt }));
    } catch (err) {
      if (!isNotFound(err)) return err; // no ConfigMap: nothing further is trusted, as upstream
    }
    return undefined;
  };
  const failure = await lookUp();
  const lookedUp = failure === undefined ? Promise.resolve() : lookUpAgain(options, client, lookUp, failure);
  lookedUp.then(
    () => follow(options, client, published),
    () => {}, // reported through `lookedUp`
  );
  return { ...trustOf(own, published), lookedUp };
}

/** Retries until an attempt succeeds or its failure is tolerated. @throws Error when access is refused permanently */
async function lookUpAgain(
  { flags, clock, log, signal }: TrustOptions,
  client: Client,
  lookUp: () => Promise<unknown>,
  first: unknown,
): Promise<void> {
  const pauses = newBackoff({ ...retry, clock });
  for (let failure = first; failure !== undefined; ) {
    if (flags["authentication-tolerate-lookup-failure"]) {
      log.warn("cannot read the cluster's authentication configuration; until then all requests may be treated as anonymous", {
        err: messageOf(failure),
      });
      return;
    }
    await waitForServer(client, { purpose: "looking up the cluster's authentication configuration", clock, log, signal });
    await clock.sleep(pauses.next(), signal);
    const wasRefused = isRefusal(failure);
    failure = await lookUp();
    // A refusal from before the server was ready may be due to missing default roles; only two in a row are final.
    if (wasRefused && isRefusal(failure)) {
      throw new Error(`unable to load configmap based request-header-client-ca-file: ${messageOf(failure)}`, { cause: failure });
    }
  }
}

/** A client error, which a retry does not change. */
function isRefusal(err: unknown): boolean {
  if (!(err instanceof StatusError)) return false;
  return err.code >= 400 && err.code < 500 && err.code !== 429;
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
  if (signal.aborted) return;
  const informers = newInformerFactory(client, { log, clock, namespace });
  const informer = informers.for<ConfigMap>(configMaps, { fieldSelector: `metadata.name=${name}` });
  informer.addHandler({
    added: (object) => published.read(object),
    updated: (_, object) => published.read(object),
    deleted: () => {}, // keep the last state: an accidental deletion must not lock out all clients
  });
  informers.start(signal);
}

interface PublishedTrust extends Trust {
  read(object: ConfigMap): void;
}

/**
 * Parses the ConfigMap: the authorities of clients, those of front proxies, and the front proxies' names and headers. A part that
 * is invalid is logged and keeps its previous value; the others are still read.
 */
function newPublishedTrust(log: Logger): PublishedTrust {
  let clientCa: ReturnType<typeof newCertificatePool> | undefined;
  let proxyCa: ReturnType<typeof newCertificatePool> | undefined;
  let proxy: Omit<FrontProxy, "pool"> | undefined;
  let frontProxy: FrontProxy | undefined;
  const poolOf = (pool: typeof clientCa, bundle: string | undefined, what: string): typeof clientCa => {
    if (bundle === undefined || bundle === "") return undefined;
    if (pool === undefined) return newCertificatePool(bundle, what);
    pool.replace(bundle);
    return pool;
  };
  const readPart = (read: () => void): void => {
    try {
      read();
    } catch (err) {
      log.error("the cluster's authentication configuration is invalid", err, { configmap: `${namespace}/${name}` });
    }
  };
  return {
    clientCa: () => clientCa,
    frontProxy: () => frontProxy,
    read({ data = {} }) {
      readPart(() => {
        clientCa = poolOf(clientCa, data["client-ca-file"], "client-ca-file");
      });
      readPart(() => {
        proxyCa = poolOf(proxyCa, data["requestheader-client-ca-file"], "requestheader-client-ca-file");
      });
      readPart(() => {
        proxy = {
          allowedNames: listOf(data["requestheader-allowed-names"]),
          usernameHeaders: listOf(data["requestheader-username-headers"]),
          groupHeaders: listOf(data["requestheader-group-headers"]),
          extraHeaderPrefixes: listOf(data["requestheader-extra-headers-prefix"]),
        };
      });
      frontProxy = proxyCa && proxy && { ...proxy, pool: proxyCa };
    },
  };
}

function listOf(text: string | undefined): string[] {
  if (text === undefined || text === "") return [];
  const list: unknown = JSON.parse(text);
  if (!Array.isArray(list) || !list.every((item) => typeof item === "string")) throw new Error(`not a list of strings: ${text}`);
  return list;
}
