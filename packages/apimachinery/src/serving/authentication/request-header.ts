/**
 * Identities that a front proxy vouches for: believed only from a client whose certificate the requestheader CA signed
 * and whose CommonName is allowed. From anybody else the headers are taken off.
 * Source: k8s.io/apiserver pkg/authentication/request/headerrequest/requestheader.go
 */
import type { Clock } from "../../clock/clock.ts";
import { subjectOf } from "../certificates.ts";
import type { Exchange } from "../exchange.ts";
import type { Authenticator } from "./authenticator.ts";
import type { CertificatePool } from "./certificate-pool.ts";
import { headerValues, unescapeExtraKey } from "./header-values.ts";
import { peerCertificate } from "./x509.ts";

export interface RequestHeaderOptions {
  pool: CertificatePool;
  /** Empty: any name that the CA signed. */
  allowedNames: readonly string[];
  usernameHeaders: readonly string[];
  groupHeaders: readonly string[];
  extraHeaderPrefixes: readonly string[];
  clock: Clock;
}

export function requestHeader(options: RequestHeaderOptions): Authenticator {
  const usernameHeaders = options.usernameHeaders.map((name) => name.toLowerCase());
  const groupHeaders = options.groupHeaders.map((name) => name.toLowerCase());
  const extraPrefixes = options.extraHeaderPrefixes.map((name) => name.toLowerCase());
  return async (exchange) => {
    const name = usernameHeaders
      .map((header) => headerValues(exchange, header)[0])
      .find((value) => value !== undefined && value !== "");
    if (name === undefined) return undefined;
    try {
      const leaf = exchange.tls === undefined ? undefined : peerCertificate(exchange.tls);
      if (leaf === undefined) return undefined;
      options.pool.verifyClient(leaf, options.clock.now());
      const { commonName } = subjectOf(leaf);
      if (options.allowedNames.length > 0 && !options.allowedNames.includes(commonName)) {
        throw new Error(`x509: subject with cn=${commonName} is not in the allowed list`);
      }
      const groups = groupHeaders.flatMap((header) => headerValues(exchange, header));
      const extra = extraOf(exchange, extraPrefixes);
      return { user: { name, groups, ...(extra === undefined ? {} : { extra }) } };
    } finally {
      strip(exchange, [...usernameHeaders, ...groupHeaders], extraPrefixes);
    }
  };
}

function extraOf(exchange: Exchange, prefixes: readonly string[]): Record<string, string[]> | undefined {
  const extra = new Map<string, string[]>();
  for (const header of Object.keys(exchange.headers)) {
    const prefix = prefixes.find((candidate) => header.startsWith(candidate));
    if (prefix === undefined) continue;
    extra.set(unescapeExtraKey(header.slice(prefix.length)), headerValues(exchange, header));
  }
  return extra.size === 0 ? undefined : Object.fromEntries(extra);
}

function strip(exchange: Exchange, names: readonly string[], prefixes: readonly string[]): void {
  for (const header of Object.keys(exchange.headers)) {
    if (names.includes(header) || prefixes.some((prefix) => header.startsWith(prefix))) delete exchange.headers[header];
  }
}
