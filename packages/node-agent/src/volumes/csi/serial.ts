/** Runs work of one name in the order it came, one at a time. */
export type Serial = <T>(name: string, work: () => Promise<T>) => Promise<T>;

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
