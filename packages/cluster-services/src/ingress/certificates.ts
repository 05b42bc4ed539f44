import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Client } from "@coxswain/apimachinery/client/client";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

/** Number of new certificates after which the hosts are looked at again, which takes milliseconds for tens of thousands. */
const newPerChoice = 20;

interface Loaded {
  readonly resourceVersion: string;
  readonly context?: SecureContext;
  /** Why there is no certificate. */
  readonly problem?: string;
}

/**
 * Certificates of the Secrets that Ingresses name. Secrets are read one by one, because the right to list them would show all
 * Secrets of the cluster; therefore they are read again periodically. While the API server is unreachable the last known
 * certificates stay in use.
 */
export class Certificates {
  readonly #client: Client;
  readonly #log: Logger;
  readonly #loaded = new Map<ObjectKey, Loaded>();
  /** Secrets of the served Ingresses in order, and the host names that each is for; none: all that have no other. */
  #wanted: readonly { readonly secret: ObjectKey; readonly hosts: readonly string[] }[] = [];
  #contexts = new Map<string, SecureContext>();

  constructor({ client, log }: { readonly client: Client; readonly log: Logger }) {
    this.#client = client;
    this.#log = log;
  }

  /** @returns whether there are Secrets that were not read yet */
  want(ingresses: readonly Ingress[]): boolean {
    this.#wanted = ingresses.flatMap((ingress) =>
      secretsOf(ingress).map(({ secret, hosts }) => ({ secret, hosts: hosts.map((host) => host.toLowerCase()) })),
    );
    const keys = new Set(this.#wanted.map(({ secret }) => secret));
    for (const key of this.#loaded.keys()) if (!keys.has(key)) this.#loaded.delete(key);
    this.#choose();
    return [...keys].some((key) => !this.#loaded.has(key));
  }

  /** Reads all Secrets that are wanted. Connections that are open keep their certificates. @throws Error when some cannot be read */
  async load(signal: AbortSignal): Promise<void> {
    let failure: { key: ObjectKey; cause: unknown } | undefined;
    let isNew = 0;
    for (const key of this.#inTurn()) {
      const before = this.#loaded.get(key);
      try {
        const now = await this.#read(key, before, signal);
        this.#loaded.set(key, now);
        if (now.context !== before?.context) isNew++;
      } catch (err) {
        failure ??= { key, cause: err };
        if (signal.aborted) break;
      }
      // A round may take minutes: what it has found is used before its end.
      if (isNew >= newPerChoice) {
        isNew = 0;
        this.#choose();
      }
    }
    this.#choose();
    if (failure !== undefined)
      throw new Error(`cannot read the Secret ${failure.key} for its certificate`, { cause: failure.cause });
  }

  /** Those that were not read yet first, and the namespaces in turn: one may name thousands. */
  #inTurn(): ObjectKey[] {
    const keys = [...new Set(this.#wanted.map(({ secret }) => secret))];
    const perNamespace = new Map<string, number>();
    const places = keys.map((key) => {
      const namespace = key.slice(0, key.indexOf("/"));
      const place = perNamespace.get(namespace) ?? 0;
      perNamespace.set(namespace, place + 1);
      return { key, isKnown: this.#loaded.has(key), place };
    });
    return places.sort((a, b) => Number(a.isKnown) - Number(b.isKnown) || a.place - b.place).map(({ key }) => key);
  }

  /** @param name of the client's hello; "" without. @returns undefined: none of the Secrets is for it */
  contextOf(name: string): SecureContext | undefined {
    const host = name.toLowerCase();
    return this.#contexts.get(host) ?? this.#contexts.get(`*${host.slice(host.indexOf(".") >>> 0)}`) ?? this.#contexts.get("");
  }

  /** Why a Secret gives no certificate; undefined when it does or was not read yet. */
  problemOf(secret: ObjectKey): string | undefined {
    return this.#loaded.get(secret)?.problem;
  }

  async #read(key: ObjectKey, before: Loaded | undefined, signal: AbortSignal): Promise<Loaded> {
    const [namespace, name = ""] = key.split("/");
    let secret: Secret;
    try {
      secret = await this.#client.get<Secret>(secrets, { namespace, name }, { signal });
    } catch (err) {
      if (!isNotFound(err)) throw err;
      return { resourceVersion: "", problem: `there is no Secret ${key}` };
    }
    const resourceVersion = secret.metadata.resourceVersion ?? "";
    if (before?.resourceVersion === resourceVersion) return before;
    try {
      const context = contextOf(secret);
      this.#log.info("loaded a certificate", { secret: key });
      return { resourceVersion, context };
    } catch (err) {
      return { resourceVersion, problem: `the Secret ${key} has no usable certificate: ${messageOf(err)}` };
    }
  }

  #choose(): void {
    const contexts = new Map<string, SecureContext>();
    for (const { secret, hosts } of this.#wanted) {
      const context = this.#loaded.get(secret)?.context;
      if (context === undefined) continue;
      for (const host of hosts.length === 0 ? [""] : hosts) if (!contexts.has(host)) contexts.set(host, context);
    }
    this.#contexts = contexts;
  }
}

/** Pure: the Secrets that an Ingress names, with their hosts. */
export function secretsOf({ metadata, spec }: Ingress): { readonly secret: ObjectKey; readonly hosts: readonly string[] }[] {
  return (spec.tls ?? []).flatMap(({ secretName, hosts = [] }) =>
    secretName ? [{ secret: `${metadata.namespace}/${secretName}`, hosts }] : [],
  );
}

/** @throws Error when certificate or key are missing, cannot be read or do not belong together */
function contextOf({ data }: Secret): SecureContext {
  const pem = (name: string): string => {
    const text = Buffer.from(String(data?.[name] ?? ""), "base64").toString();
    if (text === "") throw new Error(`${name} is missing`);
    return text;
  };
  const [cert, key] = [pem("tls.crt"), pem("tls.key")];
  new X509Certificate(cert);
  return createSecureContext({ cert, key, minVersion: "TLSv1.2" });
}
