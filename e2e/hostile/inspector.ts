/** Queries V8's inspector of the server; its port is in the server's log. */
export interface Inspector {
  /** Heap and external memory after a forced garbage collection. */
  heldBytes(): Promise<number>;
  /** CPU time of the longest iteration of the event loop since the last call, in ms. */
  longestTurnMs(): Promise<number>;
  close(): void;
}

export async function connectInspector(log: string): Promise<Inspector> {
  const url = /Debugger listening on (ws:\S+)/.exec(log)?.[1];
  if (url === undefined) throw new Error(`no inspector in the server's log:\n${log.slice(0, 500)}`);
  const socket = new WebSocket(url);
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve(), { once: true });
    socket.addEventListener("error", () => reject(new Error(`no connection to ${url}`)), { once: true });
  });
  let id = 0;
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  socket.addEventListener("message", ({ data }) => {
    const answer = JSON.parse(String(data)) as { id?: number; result?: Record<string, unknown> };
    if (answer.id !== undefined) waiting.get(answer.id)?.resolve(answer.result ?? {});
  });
  socket.addEventListener("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("the inspector is gone"));
  });
  const post = async (method: string, params: object = {}): Promise<Record<string, unknown>> => {
    const answer = Promise.withResolvers<Record<string, unknown>>();
    waiting.set(++id, answer);
    socket.send(JSON.stringify({ id, method, params }));
    try {
      return await answer.promise;
    } finally {
      waiting.delete(id);
    }
  };
  const evaluate = async (expression: string): Promise<number> => {
    const { result } = (await post("Runtime.evaluate", { expression })) as { result: { value: number } };
    return result.value;
  };
  await evaluate(`(${measureTurns})()`);
  return {
    async heldBytes() {
      await post("HeapProfiler.collectGarbage");
      return evaluate("(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())");
    },
    longestTurnMs: () => evaluate("globalThis.longestTurnMs()"),
    close: () => socket.close(),
  };
}

/**
 * Runs in the server. A timer fires once per iteration while the event loop is busy, so the CPU time of the main thread between two
 * of its calls is at most one iteration and the timer's period. Unlike the delay of the loop, it does not grow with the load of the
 * machine.
 */
function measureTurns(): void {
  let last = process.threadCpuUsage();
  let longestMs = 0;
  const usedMs = (): number => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  setInterval(() => {
    longestMs = Math.max(longestMs, usedMs());
  }, 5).unref();
  Object.assign(globalThis, {
    longestTurnMs: () => {
      const found = longestMs;
      usedMs();
      longestMs = 0;
      return found;
    },
  });
}
