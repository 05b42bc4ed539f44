import type { TLSSocket } from "node:tls";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { TokenReview } from "@coxswain/apimachinery/schema/kinds/authentication/v1";
import type { SubjectAccessReview } from "@coxswain/apimachinery/schema/kinds/authorization/v1";
import { subjectAccessReviews, tokenReviews } from "@coxswain/apimachinery/schema/kinds/resources";
import { subjectOf } from "@coxswain/apimachinery/serving/certificates";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

export interface User {
  name: string;
  uid: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
}

export interface AuthOptions {
  /** Undefined in standalone mode: then nothing can be delegated. */
  client: Client | undefined;
  clock: Clock;
  log: Logger;
  nodeName: string;
  anonymous: boolean;
  tokenWebhook: boolean;
  tokenTtlMs: number;
  x509: boolean;
  mode: "AlwaysAllow" | "Webhook";
  authorizedTtlMs: number;
  unauthorizedTtlMs: number;
}

export type Verdict = { allowed: true; user: User } | { allowed: false; status: 401 | 403; message: string };

/** Who asks, and whether they may: by client certificate and by the API server's word. Source: pkg/kubelet/server/auth.go */
export interface Auth {
  check(exchange: Exchange, path: string): Promise<Verdict>;
}

const maxCached = 4096;

export function newAuth(options: AuthOptions): Auth {
  const { client, clock, log } = options;
  const tokens = newCache<User | undefined>(clock);
  const decisions = newCache<boolean>(clock);

  async function authenticate(exchange: Exchange): Promise<User | undefined> {
    const certificate = options.x509 && exchange.tls !== undefined ? certificateUser(exchange.tls) : undefined;
    if (certificate !== undefined) return certificate;
    const header = exchange.headers.authorization;
    if (header !== undefined) {
      const token = /^bearer\s+(\S+)$/i.exec(header.trim())?.[1];
      if (token !== undefined && options.tokenWebhook && client !== undefined) {
        const user = await tokens.get(
          token,
          () => options.tokenTtlMs,
          () => reviewToken(client, token),
        );
        return user; // a token that is not good does not become anonymous
      }
      if (token !== undefined && options.tokenWebhook) return undefined;
    }
    return options.anonymous ? { name: "system:anonymous", uid: "", groups: ["system:unauthenticated"], extra: {} } : undefined;
  }

  async function authorize(user: User, attributes: Attributes): Promise<boolean> {
    if (options.mode === "AlwaysAllow") return true;
    if (client === undefined) return false;
    const key = JSON.stringify([user, attributes]);
    return decisions.get(
      key,
      (allowed) => (allowed ? options.authorizedTtlMs : options.unauthorizedTtlMs),
      () => reviewAccess(client, user, attributes, options.nodeName),
    );
  }

  return {
    async check(exchange, path) {
      let user: User | undefined;
      try {
        user = await authenticate(exchange);
      } catch (err) {
        log.error("Unable to authenticate the request due to an error", err);
      }
      if (user === undefined) return { allowed: false, status: 401, message: "Unauthorized" };
      const attributes = attributesOf(exchange.method, path);
      try {
        if (await authorize(user, attributes)) return { allowed: true, user };
      } catch (err) {
        log.error("Authorization error", err, { user: user.name });
        return { allowed: false, status: 403, message: `Authorization error (${describe(user, attributes)})` };
      }
      return { allowed: false, status: 403, message: `Forbidden (${describe(user, attributes)})` };
    },
  };
}

interface Attributes {
  verb: string;
  subresource: string;
  path: string;
}

const verbs: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
const subresources: readonly [string, string][] = [
  ["/stats", "stats"],
  ["/metrics", "metrics"],
  ["/logs", "log"],
  ["/spec", "spec"],
];

/** Everything not named is `nodes/proxy`. */
export function attributesOf(method: string, path: string): Attributes {
  const found = subresources.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`));
  return { verb: verbs[method] ?? "", subresource: found?.[1] ?? "proxy", path };
}

function describe(user: User, { verb, subresource }: Attributes): string {
  return `user=${user.name}, verb=${verb}, resource=nodes, subresource=${subresource}`;
}

function certificateUser(socket: TLSSocket): User | undefined {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate === undefined) return undefined;
  const { commonName, organizations } = subjectOf(certificate);
  if (commonName === "") return undefined;
  return { name: commonName, uid: "", groups: [...organizations, "system:authenticated"], extra: {} };
}

async function reviewToken(client: Client, token: string): Promise<User | undefined> {
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec: { token } } as TokenReview;
  const { status } = await client.create<TokenReview>(tokenReviews, body);
  if (status?.authenticated !== true) return undefined;
  const { username = "", uid = "", groups = [], extra = {} } = status.user ?? {};
  const all = groups.includes("system:authenticated") ? groups : [...groups, "system:authenticated"];
  return { name: username, uid, groups: all, extra };
}

async function reviewAccess(client: Client, user: User, attributes: Attributes, nodeName: string): Promise<boolean> {
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    metadata: {},
    spec: {
      user: user.name,
      uid: user.uid,
      groups: [...user.groups],
      extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])),
      resourceAttributes: {
        verb: attributes.verb,
        version: "v1",
        resource: "nodes",
        subresource: attributes.subresource,
        name: nodeName,
      },
    },
  } as SubjectAccessReview;
  const { status } = await client.create<SubjectAccessReview>(subjectAccessReviews, body);
  return status?.allowed === true && status.denied !== true;
}

interface Cache<T> {
  get(key: string, ttlMs: (value: T) => number, make: () => Promise<T>): Promise<T>;
}

/** Keeps answers, never failures. */
function newCache<T>(clock: Clock): Cache<T> {
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
