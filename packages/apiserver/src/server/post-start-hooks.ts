/**
 * What runs after the server listens; each hook is a check of health under its name until it is done. A hook that fails
 * is tried again: the store may be away for a while.
 * Source: k8s.io/apiserver pkg/server/hooks.go
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";

export interface PostStartHook {
  /** Shown as `poststarthook/<name>`. */
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

export interface PostStartHooks {
  /** @returns the reason why a hook is not done; undefined when it is. */
  problem(name: string): string | undefined;
  /** Names of the hooks that are not done. */
  unfinished(): string[];
  /** For how long hooks have been failing without one coming to its end meanwhile; 0 when none has failed since. */
  failingMs(): number;
  /** Runs all of them at once. Resolves when all are done; rejects when `signal` is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

const retryMs = 1000;

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

/** Done when it has begun; `run` goes on until the server ends. */
export function goesOn(name: string, run: (signal: AbortSignal) => Promise<void>, log: Logger): PostStartHook {
  return {
    name,
    async run(signal) {
      run(signal).catch((err: unknown) => {
        if (!signal.aborted) log.error("what a post start hook began has ended", err, { hook: name });
      });
    },
  };
}
