/**
 * Hooks that run after the server listens. Each one is a health check under its name until it is finished. A failed hook is
 * retried, since the store may be unavailable for a while.
 * Source: k8s.io/apiserver pkg/server/hooks.go
 */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";

export interface PostStartHook {
  /** Shown as `poststarthook/<name>`. */
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

interface PostStartHooks {
  /** @returns why a hook is not finished; undefined when it is */
  problem(name: string): string | undefined;
  /** Names of the unfinished hooks. */
  unfinished(): string[];
  /** Milliseconds since the first failure of a hook after which no hook finished; 0 when there is none. */
  failingMs(): number;
  /** Runs all hooks concurrently. Resolves when all are finished; rejects when `signal` is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

const retryMs = 1000;

/** Creates the hooks; they run on `run` and are retried every second. */
export function newPostStartHooks(hooks: readonly PostStartHook[], clock: Clock, log: Logger): PostStartHooks {
  const done = new Set<string>();
  let failingSinceMs: number | undefined;
  const runOne = async (hook: PostStartHook, signal: AbortSignal): Promise<void> => {
    for (;;) {
      try {
        await hook.run(signal);
        done.add(hook.name);
        failingSinceMs = undefined;
        return;
      } catch (err) {
        signal.throwIfAborted();
        failingSinceMs ??= clock.monotonic();
        log.error("post start hook failed", err, { hook: hook.name });
        await clock.sleep(retryMs, signal);
      }
    }
  };
  return {
    problem: (name) => (done.has(name) ? undefined : "not finished"),
    unfinished: () => hooks.map(({ name }) => name).filter((name) => !done.has(name)),
    failingMs: () => (failingSinceMs === undefined ? 0 : clock.monotonic() - failingSinceMs),
    run: async (signal) => {
      await Promise.all(hooks.map((hook) => runOne(hook, signal)));
    },
  };
}

/** A hook that is finished as soon as `run` was called, which continues until the server stops. */
export function backgroundHook(name: string, run: (signal: AbortSignal) => Promise<void>, log: Logger): PostStartHook {
  return {
    name,
    async run(signal) {
      run(signal).catch((err: unknown) => {
        if (!signal.aborted) log.error("the background work of a post start hook has ended", err, { hook: name });
      });
    },
  };
}
