/** Queries V8's inspector of the server; its port is in the server's log. */
export interface Inspector {
  /** Heap and external memory after a forced garbage collection. */
  heldBytes(): Promise<number>;
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
  const expression = "(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())";
  return {
    async heldBytes() {
      await post("HeapProfiler.collectGarbage");
      const { result } = (await post("Runtime.evaluate", { expression })) as { result: { value: number } };
      return result.value;
    },
    close: () => socket.close(),
  };
}
