import { setInterval } from "node:timers";
import { Worker } from "node:worker_threads";
import type { Find, Outcome } from "./fuzzer.ts";
import { faultOf } from "./judge.ts";
import type { Message, Task, WorkerData } from "./worker.ts";

const maxInputBytes = 64 * 1024;
/** CPU time limit of one input; inputs that are merely slow are detected long before. */
const hangSeconds = 10;
/** The default stack size of the main thread, and less memory than the default. */
const resourceLimits = { maxOldGenerationSizeMb: 512, stackSizeMb: 1 };

interface Watched extends Outcome {
  readonly finds: readonly Find[];
}

/** Events of the thread while it runs a task. */
type Event = Message | { readonly type: "broken"; readonly signature: string; readonly text: string; readonly cause?: Error };

/** Runs tasks sequentially in a worker thread; starts a new thread when an input has crashed it or it had to be terminated. */
export class WatchedThread {
  readonly #shared = new SharedArrayBuffer(8 + maxInputBytes);
  readonly #counters = new Int32Array(this.#shared, 0, 2);
  readonly #withCoverage: boolean;
  #worker: Worker | undefined;
  #onEvent: (event: Event) => void = () => {};

  constructor(options: { readonly withCoverage: boolean }) {
    this.#withCoverage = options.withCoverage;
  }

  /** @param onFind called for each fault with a new signature */
  async run(task: Task, onFind: (find: Find) => void = () => {}): Promise<Watched> {
    const finds: Find[] = [];
    const found = (find: Find): void => {
      finds.push(find);
      onFind(find);
    };
    Atomics.store(this.#counters, 0, 0);
    this.#worker ??= this.#start();
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    this.#onEvent = (event) => {
      if (event.type === "find") return found({ ...event, input: Buffer.from(event.input) });
      if (event.type === "done") return resolve({ ...event, corpus: event.corpus.map((input) => Buffer.from(input)) });
      void this.close();
      const inputs = Atomics.load(this.#counters, 0);
      if (inputs === 0)
        return reject(new Error(`the target ${task.name} cannot be loaded: ${event.text}`, { cause: event.cause }));
      found({ target: task.name, input: this.#lastInput(), fault: event });
      resolve({ inputs, corpus: [], characters: 0 });
    };
    this.#worker.postMessage(task);
    const watchdog = this.#watch();
    try {
      return { ...(await promise), finds };
    } finally {
      clearInterval(watchdog);
      this.#onEvent = () => {};
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #lastInput(): Buffer {
    const length = Atomics.load(this.#counters, 1);
    return Buffer.from(new Uint8Array(this.#shared, 8, length).slice());
  }

  #watch(): NodeJS.Timeout {
    let seen = -1;
    let since = process.cpuUsage();
    return setInterval(() => {
      const now = Atomics.load(this.#counters, 0);
      const { user, system } = process.cpuUsage(since);
      if (now === seen && now > 0 && (user + system) / 1e6 > hangSeconds)
        return this.#onEvent({ type: "broken", signature: "hang", text: `does not end within ${hangSeconds} s of CPU` });
      if (now === seen) return;
      seen = now;
      since = process.cpuUsage();
    }, 200);
  }

  #start(): Worker {
    const workerData: WorkerData = { shared: this.#shared, withCoverage: this.#withCoverage };
    // Without the flags of the test runner, which do not apply to the thread.
    const execArgv = ["--conditions=cox-source"];
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData, resourceLimits, execArgv });
    const report = (event: Event): void => {
      if (worker === this.#worker) this.#onEvent(event);
    };
    worker.on("message", (message: Message) => report(message));
    worker.on("error", (err: Error) => {
      const { signature, text } = faultOf(err);
      report({ type: "broken", signature: `uncaught ${signature}`, text, cause: err });
    });
    worker.on("exit", (code) => report({ type: "broken", signature: "exit", text: `ends the thread with exit code ${code}` }));
    return worker;
  }
}
