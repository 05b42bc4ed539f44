import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";
import type { CertificatePool } from "@coxswain/apimachinery/serving/authentication/x509";
import { delegatedAuthentication } from "@coxswain/apimachinery/serving/delegated/authentication";
import { delegatedAuthorization } from "@coxswain/apimachinery/serving/delegated/authorization";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { verbOfMethod } from "@coxswain/apimachinery/serving/verb-of-method";

interface AuthOptions {
  /** Undefined in standalone mode: no delegated authentication and authorization. */
  client: Client | undefined;
  clock: Clock;
  log: Logger;
  metrics: MetricsRegistry;
  nodeName: string;
  anonymous: boolean;
  tokenWebhook: boolean;
  tokenTtlMs: number;
  /** CA of client certificates. */
  clientCa: CertificatePool | undefined;
  mode: "AlwaysAllow" | "Webhook";
  authorizedTtlMs: number;
  unauthorizedTtlMs: number;
}

/** Result of authentication and authorization; `status` and `message` are for the response. */
type Verdict = { allowed: true; user: UserInfo } | { allowed: false; status: 401 | 403; message: string };

/**
 * Authenticates by client certificate or TokenReview and authorizes by SubjectAccessReview.
 * Source: pkg/kubelet/server/auth.go
 */
export interface Auth {
  check(exchange: Exchange, path: string): Promise<Verdict>;
}

/** Creates the access control of the kubelet API. */
export function newAuth(options: AuthOptions): Auth {
  const { client, clock, log } = options;
  const authenticate = delegatedAuthentication({
    trust: { clientCa: () => options.clientCa, frontProxy: () => undefined },
    client: options.tokenWebhook ? client : undefined,
    tokenTtlMs: options.tokenTtlMs,
    anonymous: options.anonymous,
    clock,
    metrics: options.metrics,
  });
  const review = delegatedAuthorization({ ...options, alwaysAllowGroups: [], alwaysAllowPaths: [] });
  const authorize = async (user: UserInfo, attributes: Attributes): Promise<boolean> => {
    if (options.mode === "AlwaysAllow") return true;
    const resourceAttributes = { ...attributes, version: "v1", resource: "nodes", name: options.nodeName };
    return (await review(user, { resourceAttributes })).allowed;
  };
  return {
    async check(exchange, path) {
      let user: UserInfo | undefined;
      try {
        user = (await authenticate(exchange))?.user;
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

const subresources: readonly [string, string][] = [
  ["/stats", "stats"],
  ["/metrics", "metrics"],
  ["/logs", "log"],
  ["/spec", "spec"],
];

/** The verb and the subresource of nodes that a request requires; paths that are not listed require `nodes/proxy`. */
export function attributesOf(method: string, path: string): Attributes {
  const found = subresources.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`));
  return { verb: verbOfMethod[method] ?? "", subresource: found?.[1] ?? "proxy" };
}

function describe(user: UserInfo, { verb, subresource }: Attributes): string {
  return `user=${user.name}, verb=${verb}, resource=nodes, subresource=${subresource}`;
}
