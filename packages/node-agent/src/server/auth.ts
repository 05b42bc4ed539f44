import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import {
  certificateUser,
  type DelegatedUser,
  newCache,
  reviewAccess,
  reviewToken,
} from "@coxswain/apimachinery/serving/delegated-auth";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

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

export type Verdict = { allowed: true; user: DelegatedUser } | { allowed: false; status: 401 | 403; message: string };

/** Who asks, and whether they may: by client certificate and by the API server's word. Source: pkg/kubelet/server/auth.go */
export interface Auth {
  check(exchange: Exchange, path: string): Promise<Verdict>;
}

export function newAuth(options: AuthOptions): Auth {
  const { client, clock, log } = options;
  const tokens = newCache<DelegatedUser | undefined>(clock);
  const decisions = newCache<boolean>(clock);

  async function authenticate(exchange: Exchange): Promise<DelegatedUser | undefined> {
    const certificate = options.x509 ? certificateUser(exchange) : undefined;
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

  async function authorize(user: DelegatedUser, attributes: Attributes): Promise<boolean> {
    if (options.mode === "AlwaysAllow") return true;
    if (client === undefined) return false;
    const key = JSON.stringify([user, attributes]);
    return decisions.get(
      key,
      (allowed) => (allowed ? options.authorizedTtlMs : options.unauthorizedTtlMs),
      () =>
        reviewAccess(client, user, {
          resourceAttributes: { ...attributes, version: "v1", resource: "nodes", name: options.nodeName },
        }),
    );
  }

  return {
    async check(exchange, path) {
      let user: DelegatedUser | undefined;
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
  return { verb: verbs[method] ?? "", subresource: found?.[1] ?? "proxy" };
}

function describe(user: DelegatedUser, { verb, subresource }: Attributes): string {
  return `user=${user.name}, verb=${verb}, resource=nodes, subresource=${subresource}`;
}
