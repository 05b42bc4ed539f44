import { Interrupted } from "./failure.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work` with a signal that Ctrl-C aborts, so that it can clean up. Further Ctrl-C are ignored to let the cleanup finish.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (!controller.signal.aborted) controller.abort(new Interrupted(name as (typeof signals)[number])); // cast: a listener of these signals
    process.stderr.write("cox: stopping; what this command has started is being stopped too\n");
  };
  for (const name of signals) process.on(name, onSignal);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of signals) process.off(name, onSignal);
  }
}
