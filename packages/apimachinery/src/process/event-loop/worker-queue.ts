/**
 * Runs jobs that cannot be interrupted (parsing, regular expressions) and exceed the event-loop budget in a worker thread, one at
 * a time. The thread is started for the first job and terminated when idle.
 */
import { type Transferable, Worker } from "node:worker_threads";

interface WorkerQueueOptions {
  /** Module that replies to each message on its `parentPort` with one message. */
  readonly file: URL;
  readonly heapMb: number;
  /** Time limit of a job. Wall-clock time: a fake clock does not reach another thread, and a busy machine may slow it down. */
  readonly timeoutMs: number;
  readonly idleMs: number;
}

type JobFailure = "timeout" | "memory";

/**
 * The worker thread was ended during the job: it took too long or ran out of memory. Errors of the job itself are not of this
 * class.
 */
export class JobError extends Error {
  readonly reason: JobFailure;
  constructor(reason: JobFailure) {
    super(reason === "timeout" ? "the worker thread took too long" : "the worker thread ran out of memory");
    this.reason = reason;
  }
}

interface WorkerQueue<Job, Answer> {
  /** Number of unfinished jobs. */
  readonly size: number;
  /** Runs a job. @throws JobError when the thread was lost; the next job gets a new one */
  run(job: Job, transfer?: readonly Transferable[]): Promise<Answer>;
}

interface Queued<Job, Answer> {
  readonly job: Job;
  readonly transfer: readonly Transferable[];
  resolve(answer: Answer): void;
  reject(err: Error): void;
}

/** Runs jobs one after another in one worker thread, which is started by the first of them. */
export function newWorkerQueue<Job, Answer>(options: WorkerQueueOptions): WorkerQueue<Job, Answer> {
  /** The first job is running. */
  const queue: Queued<Job, Answer>[] = [];
  let thread: Worker | undefined;
  let timer: NodeJS.Timeout | undefined;

  function send({ job, transfer }: Queued<Job, Answer>): void {
    thread ??= start();
    thread.ref();
    thread.postMessage(job, transfer);
    startTimer(options.timeoutMs, () => lose("timeout"));
  }

  function startTimer(ms: number, then: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(then, ms);
    timer.unref();
  }

  function start(): Worker {
    const started = new Worker(options.file, { resourceLimits: { maxOldGenerationSizeMb: options.heapMb } });
    started.on("message", (answer: Answer) => {
      // A thread that is being terminated still delivers what it has sent; by now another job is the first.
      if (thread === started) next((first) => first.resolve(answer));
    });
    started.on("error", () => {
      if (thread === started) lose("memory");
    });
    return started;
  }

  function lose(reason: JobFailure): void {
    stop();
    next((first) => first.reject(new JobError(reason)));
  }

  function stop(): void {
    clearTimeout(timer);
    void thread?.terminate();
    thread = undefined;
  }

  function next(settle: (first: Queued<Job, Answer>) => void): void {
    const first = queue.shift();
    const [following] = queue;
    if (following !== undefined) send(following);
    else {
      thread?.unref();
      startTimer(options.idleMs, stop);
    }
    if (first !== undefined) settle(first);
  }

  return {
    get size() {
      return queue.length;
    },
    run(job, transfer = []) {
      return new Promise((resolve, reject) => {
        const queued = { job, transfer, resolve, reject };
        queue.push(queued);
        if (queue.length === 1) send(queued);
      });
    },
  };
}
