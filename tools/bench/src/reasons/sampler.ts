import { setTimeout as sleep } from "node:timers/promises";

/** The used fields of a profile by V8's sampling profiler. */
interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** ID of the leaf node of each sample. */
  readonly samples: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

/** Number of non-idle samples, and of those whose stack contains a function of one of the files. */
interface Sampled {
  readonly busy: number;
  readonly within: number;
}

const idle: ReadonlySet<string> = new Set(["(idle)", "(root)"]);

/** Counts the samples of a CPU profile whose stack contains a function of a file that matches; idle samples are left out. */
export function samplesWithin({ nodes, samples }: CpuProfile, files: RegExp): Sampled {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const inside = new Set<number>();
  const visit = (node: ProfileNode, isInside: boolean): void => {
    const isIn = isInside || files.test(node.callFrame.url);
    if (isIn) inside.add(node.id);
    for (const child of node.children ?? []) visit(byId.get(child)!, isIn);
  };
  if (nodes[0] !== undefined) visit(nodes[0], false);
  const busy = samples.filter((id) => !idle.has(byId.get(id)?.callFrame.functionName ?? "(idle)"));
  return { busy: busy.length, within: busy.filter((id) => inside.has(id)).length };
}

const everyMicroseconds = 250;

/** Profiles another local Node process while `work` runs, through its inspector, which is opened for this purpose. */
export async function profileOf(pid: number, work: () => Promise<void>): Promise<CpuProfile> {
  process.kill(pid, "SIGUSR1");
  const inspector = await openInspector();
  try {
    const { result } = await inspector.send<{ result: { value: number } }>("Runtime.evaluate", { expression: "process.pid" });
    if (result.value !== pid) throw new Error(`${page} is process ${result.value}'s, not ${pid}'s: end its inspector first`);
    await inspector.send("Profiler.enable");
    await inspector.send("Profiler.setSamplingInterval", { interval: everyMicroseconds });
    await inspector.send("Profiler.start");
    await work();
    const { profile } = await inspector.send<{ profile: CpuProfile }>("Profiler.stop");
    // Closes the inspector's port, which the next process uses.
    await inspector.send("Runtime.evaluate", {
      expression: "setImmediate(() => process.getBuiltinModule('node:inspector').close())",
    });
    return profile;
  } finally {
    inspector.close();
  }
}

const page = "http://127.0.0.1:9229/json/list";
const attempts = 50;

async function openInspector() {
  const socket = new WebSocket(await addressOf());
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("the inspector does not answer")));
  });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  socket.addEventListener("message", ({ data }) => {
    const { id, result, error } = JSON.parse(String(data));
    const answer = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) answer?.resolve(result);
    else answer?.reject(new Error(error.message));
  });
  socket.addEventListener("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("the inspector's connection ended"));
  });
  let last = 0;
  return {
    send<T = unknown>(method: string, params: object = {}): Promise<T> {
      const answer = Promise.withResolvers<unknown>();
      waiting.set(++last, answer);
      socket.send(JSON.stringify({ id: last, method, params }));
      return answer.promise as Promise<T>; // cast: the inspector's protocol
    },
    close: () => socket.close(),
  };
}

async function addressOf(): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    try {
      const [target] = (await (await fetch(page)).json()) as { webSocketDebuggerUrl: string }[]; // cast: the inspector's list of targets
      if (target !== undefined) return target.webSocketDebuggerUrl;
    } catch (err) {
      if (attempt === attempts) throw new Error(`no inspector answers at ${page}`, { cause: err });
    }
    await sleep(100);
  }
}
