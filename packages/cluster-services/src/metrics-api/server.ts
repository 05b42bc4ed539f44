import {
  forbidden,
  methodNotSupported,
  notFound,
  StatusError,
  unauthorized,
} from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Authenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";
import type { DelegatedAuthorizer } from "@coxswain/apimachinery/serving/delegated/authorization";
import { newGuard } from "@coxswain/apimachinery/serving/delegated/guard";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { type HttpServer, startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { answerInternalError } from "@coxswain/apimachinery/serving/plain-error";
import { answerResource, type Inventory, type Target, targetOf } from "./api.ts";
import { group } from "./objects.ts";
import type { UsageStore } from "./usage-store.ts";

interface MetricsServerOptions {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly cert: string;
  readonly key: string;
  readonly authenticate: Authenticator;
  readonly authorize: DelegatedAuthorizer;
  readonly inventory: Inventory;
  readonly store: UsageStore;
  readonly log: Logger;
  readonly clock: Clock;
}

/** The API server's own limit for bodies. */
const mostBodyBytes = 3 << 20;
const health = new Set(["/healthz", "/livez", "/readyz"]);
const json = { "content-type": "application/json", "x-content-type-options": "nosniff" };

/** Serves metrics.k8s.io behind delegated authentication and authorization. @throws Error when it cannot listen */
export async function startMetricsServer(options: MetricsServerOptions): Promise<HttpServer> {
  const { address, port, cert, key, log, clock } = options;
  const guard = newGuard(options);
  const answer = async (exchange: Exchange): Promise<void> => {
    const [path = "", search = ""] = exchange.url.split("?");
    if (health.has(path)) return exchange.respond(200, { "content-type": "text/plain; charset=utf-8" }, "ok");
    const target = targetOf(path);
    if (target?.kind !== "resource") {
      if (!(await guard(exchange, path))) return;
      if (target === undefined) return refuse(exchange, notFound({ group: "", resource: "" }, ""));
      return exchange.respond(200, json, `${JSON.stringify(target.body())}\n`);
    }
    await allow(options, exchange, target);
    if (exchange.method !== "GET") {
      // Read the body to its end: responding earlier closes the connection, and the API server that proxies the request would
      // report that instead of this response.
      await exchange.body(mostBodyBytes);
      throw methodNotSupported({ group, resource: target.resource }, exchange.method.toLowerCase());
    }
    const accept = String(exchange.headers.accept ?? "");
    const request = { target, query: new URLSearchParams(search), accept };
    const body = answerResource(request, options.inventory, options.store, clock.now());
    exchange.respond(200, json, `${JSON.stringify(body)}\n`);
  };
  return startHttpServer({
    bindAddress: address,
    port,
    tls: { cert, key, requestClientCertificate: true },
    log,
    async handler(exchange) {
      try {
        await answer(exchange);
      } catch (err) {
        if (err instanceof StatusError) return refuse(exchange, err);
        log.error("cannot answer a request for metrics", err, { path: exchange.url.split("?")[0] });
        answerInternalError(exchange, err);
      }
    },
  });
}

const verbs: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

/** @throws StatusError 401 or 403; Error when the API server cannot be queried */
async function allow(
  { authenticate, authorize, log }: MetricsServerOptions,
  exchange: Exchange,
  target: Extract<Target, { kind: "resource" }>,
): Promise<void> {
  const user = await authenticate(exchange).then(
    (result) => result?.user,
    (err: unknown) => void log.error("Unable to authenticate the request due to an error", err),
  );
  if (user === undefined) throw unauthorized("Unauthorized");
  const { resource, namespace, name } = target;
  const verb = verbs[exchange.method] ?? (name === "" ? "list" : "get");
  const { allowed, reason } = await authorize(user, {
    resourceAttributes: { group, version: "v1beta1", resource, namespace, name, verb },
  });
  if (!allowed) throw forbidden({ group, resource }, name, refusal(user, verb, target, reason));
}

function refusal(user: UserInfo, verb: string, { resource, namespace }: { resource: string; namespace: string }, reason: string) {
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${goQuote(namespace)}`;
  const text = `User ${goQuote(user.name)} cannot ${verb} resource ${goQuote(resource)} in API group ${goQuote(group)} ${where}`;
  return reason === "" ? text : `${text}: ${reason}`;
}

function refuse(exchange: Exchange, { code, status }: StatusError): void {
  exchange.respond(code, json, `${JSON.stringify(status)}\n`);
}
