/**
 * Identities asserted by a front proxy, accepted only over a connection whose client certificate is signed by the requestheader
 * CA and has an allowed CommonName. The headers are removed from every request, so that nothing behind this filter can mistake
 * them for authenticated.
 * Source: k8s.io/apiserver pkg/authentication/request/headerrequest/requestheader.go
 */
import type { Clock } from "../../process/clock/clock.ts";
import { subjectOf } from "../certificate-fields.ts";
import type { Exchange } from "../exchange.ts";
import type { Authenticator } from "./authenticator.ts";
import { headerValues, unescapeExtraKey } from "./header-values.ts";
import type { UserInfo } from "./user.ts";
import { type CertificatePool, peerCertificate } from "./x509.ts";

/** Trusted proxies and their headers. Header names in any case. */
export interface FrontProxy {
  readonly pool: CertificatePool;
  /** Allowed CommonNames; empty: any certificate of the CA. */
  readonly allowedNames: readonly string[];
  readonly usernameHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

/** @param proxyOf returns the current configuration; undefined: no proxy is trusted */
export function requestHeader(proxyOf: () => FrontProxy | undefined, clock: Clock): Authenticator {
  const headersOf = lowerCased();
  return async (exchange) => {
    const proxy = proxyOf();
    if (proxy === undefined) return undefined;
    const headers = headersOf(proxy);
    const present = Object.keys(exchange.headers).filter((name) => headers.isOurs(name));
    if (present.length === 0) return undefined;
    try {
      const user = userOf(exchange, present, headers);
      if (user === undefined || exchange.tls === undefined) return undefined;
      const leaf = peerCertificate(exchange.tls);
      if (leaf === undefined) return undefined;
      proxy.pool.verifyClient(leaf, clock.now());
      const { commonName } = subjectOf(leaf);
      if (proxy.allowedNames.length > 0 && !proxy.allowedNames.includes(commonName)) {
        throw new Error(`x509: subject with cn=${commonName} is not in the allowed list`);
      }
      return { user };
    } finally {
      for (const name of present) delete exchange.headers[name];
    }
  };
}

interface Headers {
  readonly username: readonly string[];
  readonly group: readonly string[];
  readonly extraPrefixes: readonly string[];
  isOurs(name: string): boolean;
}

/** The header names in lower case, as Node spells them. Computed once for each configuration. */
function lowerCased(): (proxy: FrontProxy) => Headers {
  const known = new WeakMap<FrontProxy, Headers>();
  const lower = (names: readonly string[]): string[] => names.map((name) => name.toLowerCase());
  return (proxy) => {
    let headers = known.get(proxy);
    if (headers === undefined) {
      const username = lower(proxy.usernameHeaders);
      const group = lower(proxy.groupHeaders);
      const extraPrefixes = lower(proxy.extraHeaderPrefixes);
      const isOurs = (name: string): boolean =>
        username.includes(name) || group.includes(name) || extraPrefixes.some((prefix) => name.startsWith(prefix));
      headers = { username, group, extraPrefixes, isOurs };
      known.set(proxy, headers);
    }
    return headers;
  };
}

/** @returns undefined when no header names a user */
function userOf(exchange: Exchange, present: readonly string[], headers: Headers): UserInfo | undefined {
  const filled = (header: string): string[] => headerValues(exchange, header).filter((value) => value !== "");
  const name = headers.username.map((header) => headerValues(exchange, header)[0]).find((value) => value);
  if (name === undefined) return undefined;
  const extra = new Map<string, string[]>();
  for (const header of present) {
    const prefix = headers.extraPrefixes.find((candidate) => header.startsWith(candidate));
    if (prefix === undefined) continue;
    const key = unescapeExtraKey(header.slice(prefix.length));
    // Header names that decode to the same key are merged.
    extra.set(key, [...(extra.get(key) ?? []), ...headerValues(exchange, header)]);
  }
  return {
    name,
    groups: headers.group.flatMap(filled),
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}
