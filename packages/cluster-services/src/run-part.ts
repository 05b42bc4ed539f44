import { newBackoff } from "@coxswain/apimachinery/informers/backoff";
import { scopedInformers } from "@coxswain/apimachinery/informers/scoped-informers";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Part, PartContext, PartDefinition } from "./part.ts";
import type { PartHealth } from "./part-health.ts";

/** Pause between a failure and the next start. */
const restartBackoff = { initialMs: 1_000, maxMs: 60_000, resetAfterMs: 180_000, factor: 2, jitter: 0.2 };

/**
 * Runs a part until `signal` is aborted. A failure, at its start or later, is reported to health, in the log and as an event on
 * the Node; then the part is stopped and started again after 1 s to 60 s. Never rejects.
 */
export async function runPart(
  definition: PartDefinition,
  base: Omit<PartContext, "signal" | "fail">,
  health: PartHealth,
  signal: AbortSignal,
): Promise<void> {
  const { name } = definition;
  const { log, clock } = base;
  const backoff = newBackoff({ ...restartBackoff, clock });
  while (!signal.aborted) {
    health.starting(name);
    const failure = await runOnce(definition, base, health, signal);
    if (failure === undefined) break;
    const waitMs = backoff.next();
    health.failed(name, failure.cause);
    log.error("the part failed; it will be started again", failure.cause, { part: name, afterMs: Math.round(waitMs) });
    const node = { apiVersion: "v1", kind: "Node", name: base.nodeName, uid: base.nodeName };
    base.recorder.event(node, "Warning", "PartFailed", `${name}: ${causesOf(failure.cause)}`);
    await clock.sleep(waitMs, signal).catch(() => {});
  }
  health.ended(name);
}

/** One start and run of the part. @returns the failure; undefined when `signal` was aborted */
async function runOnce(
  definition: PartDefinition,
  base: Omit<PartContext, "signal" | "fail">,
  health: PartHealth,
  signal: AbortSignal,
): Promise<{ readonly cause: unknown } | undefined> {
  const { name, load } = definition;
  const ending = new AbortController();
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {}); // marks the promise as handled: it may reject before anything awaits it
  const stopped = (): void => ended.reject(signal.reason);
  signal.addEventListener("abort", stopped, { once: true });
  const scope = scopedInformers(base.informers);
  let part: Part | undefined;
  try {
    const start = await load();
    part = await start({
      ...base,
      informers: scope.informers,
      signal: AbortSignal.any([signal, ending.signal]),
      fail: ended.reject,
    });
    health.running(name, part);
    return await ended.promise;
  } catch (err) {
    return signal.aborted ? undefined : { cause: err };
  } finally {
    signal.removeEventListener("abort", stopped);
    ending.abort(new Error("the part has ended"));
    scope.removeHandlers();
    await part?.stop?.().catch((err: unknown) => base.log.error("the part did not stop cleanly", err, { part: name }));
  }
}
