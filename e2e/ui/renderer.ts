/** What a page costs: the heaps of the page and its worker, and the CPU of its main thread. */
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

/** CPU time of the page's main thread for one frame, in ms: of the mean, the 95th of 100, and the worst. */
export interface Scroll {
  readonly meanMs: number;
  readonly p95Ms: number;
  readonly worstMs: number;
}

interface TraceEvent {
  readonly name: string;
  /** CPU time of the thread so far, in µs. */
  readonly tts?: number;
}

const mark = "frame-of-test";

/** Scrolls an element by so many pixels in each frame, for so many frames. */
export async function scroll(browser: Browser, page: Page, selector: string, frames: number, step = 120): Promise<Scroll> {
  await browser.startTracing(page, { categories: ["blink.user_timing"] });
  await page.evaluate(`(async () => {
    const element = document.querySelector(${JSON.stringify(selector)});
    let step = ${step};
    for (let frame = 0; frame <= ${frames}; frame++) {
      performance.mark("${mark}");
      const from = element.scrollTop;
      element.scrollTop += step;
      if (element.scrollTop === from) step = -step;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
  })()`);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const times = traceEvents
    .flatMap(({ name, tts }) => (name === mark && tts !== undefined ? [tts / 1000] : []))
    .sort((a, b) => a - b);
  if (times.length !== frames + 1) throw new Error(`${times.length} marks of ${frames + 1} frames in the trace`);
  const each = times.slice(1).map((time, i) => time - (times[i] as number));
  const sorted = each.toSorted((a, b) => a - b);
  return {
    meanMs: ((times.at(-1) as number) - (times[0] as number)) / frames,
    p95Ms: sorted[Math.floor(frames * 0.95)] as number,
    worstMs: sorted.at(-1) as number,
  };
}
