import { messageOf } from "../objects/errors/message.ts";
import type { Logger } from "../process/logging/logger.ts";
import type { Exchange } from "./exchange.ts";

export interface HealthCheck {
  readonly name: string;
  /** Throws or rejects with the reason, which is logged and not shown on the page. */
  run(): void | Promise<void>;
  /** A failure is listed, and reported when the check is queried by name, but does not fail the page. */
  readonly informative?: boolean;
  /** Warning of a passing check, shown with `?verbose`. */
  warning?(): Promise<string | undefined>;
}

const plain = { "content-type": "text/plain; charset=utf-8" };
const headers = { ...plain, "x-content-type-options": "nosniff" };

/** `/readyz/etcd?verbose` → page `readyz`, check `etcd`; undefined for any other path. */
export function healthPage(path: string): { page: string; check: string } | undefined {
  const match = /^\/(healthz|livez|readyz)(?:\/(.+))?$/.exec(path);
  return match === null ? undefined : { page: match[1]!, check: match[2] ?? "" };
}

/**
 * Answers a health page: `ok`, or the list of checks when one failed. `?verbose` always lists them, `?exclude=name` skips one.
 * @param single name of one check, `""` for the whole page
 * Source: k8s.io/apiserver pkg/server/healthz/healthz.go
 */
export async function answerHealth(
  exchange: Exchange,
  page: string,
  single: string,
  checks: readonly HealthCheck[],
  log: Logger,
): Promise<void> {
  if (single !== "") return answerOne(exchange, checks, single);
  const at = exchange.url.indexOf("?");
  const query = new URLSearchParams(at < 0 ? "" : exchange.url.slice(at + 1));
  const excluded = new Set(query.getAll("exclude"));
  let text = "";
  let failed = false;
  const verbose = query.has("verbose");
  const reasons = await Promise.all(checks.map((check) => (excluded.has(check.name) ? undefined : reasonOf(check))));
  for (const [i, { name, warning, informative = false }] of checks.entries()) {
    if (excluded.delete(name)) text += `[+]${name} excluded: ok\n`;
    else if (reasons[i] === undefined) {
      text += `[+]${name} ok\n`;
      const warned = verbose ? await warning?.() : undefined;
      if (warned !== undefined) text += `warn: ${name}: ${warned}\n`;
    } else {
      failed ||= !informative;
      text += `[-]${name} failed: reason withheld\n`;
      log.v(2)?.info("health check failed", { page, check: name, reason: reasons[i] });
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(name)).sort();
    text += `warn: some health checks cannot be excluded: no matches for ${names.join(",")}\n`;
  }
  if (failed) return exchange.respond(500, headers, `${text}${page} check failed\n`);
  exchange.respond(200, headers, verbose ? `${text}${page} check passed\n` : "ok");
}

async function answerOne(exchange: Exchange, checks: readonly HealthCheck[], name: string): Promise<void> {
  const check = checks.find((one) => one.name === name);
  if (check === undefined) return exchange.respond(404, headers, "404 page not found\n");
  const reason = await reasonOf(check);
  if (reason === undefined) exchange.respond(200, plain, "ok");
  else exchange.respond(500, headers, `internal server error: ${reason}\n`);
}

async function reasonOf(check: HealthCheck): Promise<string | undefined> {
  try {
    await check.run();
    return undefined;
  } catch (err) {
    return messageOf(err);
  }
}
