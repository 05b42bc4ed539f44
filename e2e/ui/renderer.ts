/** What a page costs: the heaps of the page and its worker, and the CPU of its main thread. */
import { readFileSync } from "node:fs";
import type { Browser, CDPSession, Page } from "playwright-core";

interface Heap {
  readonly usedSize: number;
  readonly embedderHeapUsedSize?: number;
  readonly backingStorageSize?: number;
}

const sum = ({ usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 }: Heap): number =>
  usedSize + embedderHeapUsedSize + backingStorageSize;

/** @returns bytes that page and worker use together, of JavaScript and of what it keeps alive; without what can be collected */
export async function heapBytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  try {
    await session.send("HeapProfiler.collectGarbage");
    const own = sum(await session.send("Runtime.getHeapUsage"));
    return own + (await workerHeap(session));
  } finally {
    await session.detach();
  }
}

async function workerHeap(session: CDPSession): Promise<number> {
  const attached = new Promise<string>((resolve) => {
    session.on("Target.attachedToTarget", ({ sessionId, targetInfo }) => {
      if (targetInfo.type === "worker") resolve(sessionId);
    });
  });
  await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
  const sessionId = await attached;
  const ask = (id: number, method: string): Promise<unknown> =>
    new Promise((resolve) => {
      session.on("Target.receivedMessageFromTarget", ({ message }) => {
        const answer = JSON.parse(message) as { readonly id?: number; readonly result?: unknown };
        if (answer.id === id) resolve(answer.result);
      });
      void session.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id, method }) });
    });
  await ask(1, "HeapProfiler.collectGarbage");
  return sum((await ask(2, "Runtime.getHeapUsage")) as Heap);
}

export interface Scroll {
  readonly frames: number;
  /** Milliseconds of the main thread for one frame. */
  readonly cpuMs: number;
}

/** Scrolls an element by some rows in each frame, for so many frames. */
export async function scroll(browser: Browser, page: Page, selector: string, frames: number): Promise<Scroll> {
  const pid = await rendererOf(browser, page);
  const before = mainThreadMs(pid);
  await page.evaluate(`(async () => {
    const element = document.querySelector(${JSON.stringify(selector)});
    let step = 120;
    for (let frame = 0; frame < ${frames}; frame++) {
      const from = element.scrollTop;
      element.scrollTop += step;
      if (element.scrollTop === from) step = -step;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  })()`);
  return { frames, cpuMs: (mainThreadMs(pid) - before) / frames };
}

/** The renderer that works for this page: of all, the one whose main thread runs the page's code. */
async function rendererOf(browser: Browser, page: Page): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  await session.detach();
  const renderers = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
  const before = new Map(renderers.map((id) => [id, mainThreadMs(id)]));
  await page.evaluate("{ const end = performance.now() + 200; while (performance.now() < end); }");
  const workOf = (id: number): number => mainThreadMs(id) - (before.get(id) ?? 0);
  return renderers.sort((a, b) => workOf(b) - workOf(a))[0] as number;
}

/** CPU time of the first thread of a process, which is a renderer's main thread. */
function mainThreadMs(pid: number): number {
  const [nanos = "0"] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
  return Number(nanos) / 1e6;
}
