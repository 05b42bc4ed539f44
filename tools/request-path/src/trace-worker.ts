import { parentPort, workerData } from "node:worker_threads";
import type { TraceOrder } from "./trace.ts";

/**
 * Debugs the main thread through its inspector: stops it at the start of each given function, records the function and resumes
 * it. A thread cannot stop itself, hence the worker.
 */
const { url, functions } = workerData as TraceOrder; // cast: trace.ts passes it
const entered: number[] = [];
const byBreakpoint = new Map<string, number>();
const answers = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
let lastId = 0;

const socket = new WebSocket(url);
socket.addEventListener("message", ({ data }) => {
  const { id, method, result = {}, params, error } = JSON.parse(String(data));
  if (method === "Debugger.paused") {
    for (const breakpoint of params.hitBreakpoints ?? []) entered.push(byBreakpoint.get(breakpoint) ?? -1);
    void post("Debugger.resume");
  }
  if (error === undefined) answers.get(id)?.resolve(result);
  else answers.get(id)?.reject(new Error(error.message));
  answers.delete(id);
});

function post(method: string, params: object = {}): Promise<Record<string, unknown>> {
  const answer = Promise.withResolvers<Record<string, unknown>>();
  answers.set(++lastId, answer);
  socket.send(JSON.stringify({ id: lastId, method, params }));
  return answer.promise;
}

await new Promise((resolve, reject) => {
  socket.addEventListener("open", resolve);
  socket.addEventListener("error", reject);
});
await post("Debugger.enable");
for (const [index, { scriptId, from, to }] of functions.entries()) {
  const at = (place: { line: number; column: number }) => ({ scriptId, lineNumber: place.line, columnNumber: place.column });
  // cast: the inspector's protocol
  const { locations } = (await post("Debugger.getPossibleBreakpoints", {
    start: at(from),
    end: at(to),
    restrictToFunction: true,
  })) as { locations: object[] };
  if (locations[0] === undefined) continue;
  const { breakpointId } = await post("Debugger.setBreakpoint", { location: locations[0] });
  byBreakpoint.set(String(breakpointId), index);
}
const finish = async (): Promise<void> => {
  await post("Debugger.disable");
  socket.close();
  parentPort?.postMessage(entered.filter((index) => index >= 0));
};
parentPort?.once("message", () => void finish());
parentPort?.postMessage("ready");
