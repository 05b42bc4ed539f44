/** One page of health from its checks. Source: k8s.io/apiserver pkg/server/healthz/healthz.go */
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";

export interface HealthCheck {
  readonly name: string;
  /** Rejects with the reason, which goes to the log and not to the one who asks. */
  run(): Promise<void>;
}

const headers = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };

/** @param single name of one check, `""` for the whole page */
export async function answerHealth(
  exchange: Exchange,
  page: string,
  single: string,
  checks: readonly HealthCheck[],
  log: Logger,
): Promise<void> {
  if (single !== "") {
    const check = checks.find(({ name }) => name === single);
    if (check === undefined) return exchange.respond(404, headers, "404 page not found\n");
    const reason = await failure(check);
    if (reason === undefined) return exchange.respond(200, headers, "ok");
    return exchange.respond(500, headers, `internal server error: ${reason}\n`);
  }
  const at = exchange.url.indexOf("?");
  const query = new URLSearchParams(at < 0 ? "" : exchange.url.slice(at + 1));
  const excluded = new Set(query.getAll("exclude").flatMap((names) => names.split(",")).filter((name) => name !== ""));
  let text = "";
  const failed: string[] = [];
  const reasons = await Promise.all(checks.map((check) => (excluded.has(check.name) ? undefined : failure(check))));
  for (const [i, { name }] of checks.entries()) {
    if (excluded.delete(name)) text += `[+]${name} excluded: ok\n`;
    else if (reasons[i] === undefined) text += `[+]${name} ok\n`;
    else {
      failed.push(name);
      text += `[-]${name} failed: reason withheld\n`;
      log.v(2)?.info("health check failed", { page, check: name, reason: reasons[i] });
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(name)).sort();
    text += `warn: some health checks cannot be excluded: no matches for ${names.join(",")}\n`;
  }
  if (failed.length > 0) return exchange.respond(500, headers, `${text}${page} check failed\n`);
  exchange.respond(200, headers, query.has("verbose") ? `${text}${page} check passed\n` : "ok");
}

async function failure(check: HealthCheck): Promise<string | undefined> {
  try {
    await check.run();
    return undefined;
  } catch (err) {
    return err instanceof Error ? err.message : String(err);
  }
}
