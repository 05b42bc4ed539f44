import { X509Certificate } from "node:crypto";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { TokenReview } from "../schema/kinds/authentication/v1.ts";
import type { SubjectAccessReview, SubjectAccessReviewSpec } from "../schema/kinds/authorization/v1.ts";
import { subjectAccessReviews, tokenReviews } from "../schema/kinds/resources.ts";
import { subjectOf } from "./certificates.ts";
import type { Exchange } from "./exchange.ts";

export interface DelegatedUser {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface DelegatedAuthOptions {
  /** Undefined: nobody to ask, so only client certificates and the always allowed paths get in. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tokenTtlMs: number;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  /** Paths that need no authorization; a `*` at the end stands for any rest. */
  readonly alwaysAllowPaths: readonly string[];
}

/** @returns undefined when the request may go on. */
export interface DelegatedAuth {
  check(exchange: Exchange, path: string): Promise<{ status: 401 | 403 | 500; message: string } | undefined>;
}

const maxCached = 4096;

/**
 * Who asks, by client certificate or by the API server's word about a token, and whether the API server lets them.
 * Source: k8s.io/apiserver pkg/authentication/authenticatorfactory and pkg/authorization/authorizerfactory
 */
export function newDelegatedAuth(options: DelegatedAuthOptions): DelegatedAuth {
  const { client, clock, log } = options;
  const tokens = newCache<DelegatedUser | undefined>(clock);
  const decisions = newCache<boolean>(clock);

  const authenticate = async (exchange: Exchange): Promise<DelegatedUser | undefined> => {
    const certificate = certificateUser(exchange);
    if (certificate !== undefined) return certificate;
    const token = /^bearer\s+(\S+)$/i.exec(exchange.headers.authorization?.trim() ?? "")?.[1];
    if (token === undefined) return anonymous;
    if (client === undefined) return undefined;
    return tokens.get(
      token,
      () => options.tokenTtlMs,
      () => reviewToken(client, token),
    );
  };
  const authorize = (user: DelegatedUser, verb: string, path: string): Promise<boolean> => {
    if (user.groups.includes("system:masters")) return Promise.resolve(true);
    if (client === undefined) return Promise.resolve(false);
    return decisions.get(
      JSON.stringify([user, verb, path]),
      (allowed) => (allowed ? options.authorizedTtlMs : options.unauthorizedTtlMs),
      () => reviewAccess(client, user, { nonResourceAttributes: { verb, path } }),
    );
  };
  return {
    async check(exchange, path) {
      let user: DelegatedUser | undefined;
      try {
        user = await authenticate(exchange);
      } catch (err) {
        log.error("unable to authenticate the request", err);
      }
      if (user === undefined) return { status: 401, message: "Unauthorized" };
      if (options.alwaysAllowPaths.some((allowed) => matchesPath(allowed, path))) return undefined;
      const verb = exchange.method.toLowerCase();
      try {
        if (await authorize(user, verb, path)) return undefined;
      } catch (err) {
        log.error("cannot ask whether a request is allowed", err, { user: user.name });
        return { status: 500, message: "Internal Server Error: the authorization could not be looked up" };
      }
      return { status: 403, message: `forbidden: User ${JSON.stringify(user.name)} cannot ${verb} path ${JSON.stringify(path)}` };
    },
  };
}

const anonymous: DelegatedUser = { name: "system:anonymous", uid: "", groups: ["system:unauthenticated"], extra: {} };

/** The subject of a client certificate that the TLS layer verified; undefined without one. */
export function certificateUser({ tls }: Exchange): DelegatedUser | undefined {
  if (tls === undefined || !tls.authorized) return undefined;
  const raw = tls.getPeerCertificate(false)?.raw;
  if (raw === undefined) return undefined;
  const { commonName, organizations } = subjectOf(new X509Certificate(raw));
  if (commonName === "") return undefined;
  return { name: commonName, uid: "", groups: [...organizations, "system:authenticated"], extra: {} };
}

/** Asks the API server whose token this is; undefined when it is nobody's. */
export async function reviewToken(client: Client, token: string): Promise<DelegatedUser | undefined> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec: { token } } as TokenReview;
  const { status } = await client.create<TokenReview>(tokenReviews, review);
  if (status?.authenticated !== true) return undefined;
  const { username = "", uid = "", groups = [], extra = {} } = status.user ?? {};
  const all = groups.includes("system:authenticated") ? groups : [...groups, "system:authenticated"];
  return { name: username, uid, groups: all, extra };
}

/** Asks the API server whether the user may. */
export async function reviewAccess(
  client: Client,
  user: DelegatedUser,
  attributes: Pick<SubjectAccessReviewSpec, "resourceAttributes" | "nonResourceAttributes">,
): Promise<boolean> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    metadata: {},
    spec: {
      user: user.name,
      uid: user.uid,
      groups: [...user.groups],
      extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])),
      ...attributes,
    },
  } as SubjectAccessReview;
  const { status } = await client.create<SubjectAccessReview>(subjectAccessReviews, review);
  return status?.allowed === true && status.denied !== true;
}

export interface AnswerCache<T> {
  get(key: string, ttlMs: (value: T) => number, make: () => Promise<T>): Promise<T>;
}

/** Keeps answers, never failures. */
export function newCache<T>(clock: Clock): AnswerCache<T> {
  const entries = new Map<string, { value: T; until: number }>();
  return {
    async get(key, ttlMs, make) {
      const found = entries.get(key);
      if (found !== undefined && found.until > clock.monotonic()) return found.value;
      const value = await make();
      if (entries.size >= maxCached) entries.clear();
      entries.set(key, { value, until: clock.monotonic() + ttlMs(value) });
      return value;
    },
  };
}

function matchesPath(allowed: string, path: string): boolean {
  const wanted = allowed.startsWith("/") ? allowed : `/${allowed}`;
  return wanted.endsWith("*") ? path.startsWith(wanted.slice(0, -1)) : path === wanted;
}
