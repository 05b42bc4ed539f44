/** Runs functions with the same name one at a time, in call order. */
export type Serial = <T>(name: string, work: () => Promise<T>) => Promise<T>;

/** Creates a per-name queue. A failure does not affect the calls queued behind it. */
export function newSerial(): Serial {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    const before = last.get(name);
    const running = (async () => {
      await before?.catch(() => undefined);
      return work();
    })();
    last.set(name, running);
    try {
      return await running;
    } finally {
      if (last.get(name) === running) last.delete(name);
    }
  };
}
