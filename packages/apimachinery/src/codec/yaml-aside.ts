/**
 * Parses large YAML in a thread of its own: a megabyte takes half a second, in which nobody else would be served. There
 * is one thread, begun when it is needed and ended when it is not; what waits for it is limited, and so is what one text
 * may take.
 */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { badRequest, requestEntityTooLarge, StatusError, tooManyRequests } from "../errors/status-error.ts";
import { parseJsonText } from "./json-parse.ts";
import { parseYaml } from "./yaml.ts";
import type { YamlAnswer, YamlJob } from "./yaml-thread.ts";

/** Some 20 ms of work: not worth a thread. */
const tokensHere = 10_000;
const mostWaiting = 16;
/**
 * Only for a text that would never end: none takes more than two seconds of work (its tokens are limited), but a busy machine may
 * give the thread little. Who waits meanwhile has a deadline of their own.
 */
const longestMs = 60_000;
const idleMs = 10_000;
const heapMb = 768;

/**
 * As `parseYaml`, for texts of any size that a request may have. What is parsed aside has sorted keys, as everything has
 * that Go makes of YAML.
 * @throws StatusError 400; 413 for what takes too long or too much; 429 when too many wait
 */
export async function parseYamlAside(text: string, repeated?: string[]): Promise<unknown> {
  try {
    return parseYaml(text, repeated, tokensHere);
  } catch (err) {
    if (!(err instanceof StatusError) || err.code !== 413) throw err;
  }
  const answer = await ask({ text, strict: repeated !== undefined });
  if ("failure" in answer) throw new StatusError(answer.failure);
  repeated?.push(...answer.repeated);
  try {
    return parseJsonText(answer.json);
  } catch {
    throw badRequest("error converting YAML to JSON: yaml: exceeded max depth");
  }
}

interface Asked {
  readonly job: YamlJob;
  resolve(answer: YamlAnswer): void;
  reject(err: Error): void;
}

/** The first is being answered. */
const asked: Asked[] = [];
let thread: Worker | undefined;
let timer: NodeJS.Timeout | undefined;

function ask(job: YamlJob): Promise<YamlAnswer> {
  if (asked.length >= mostWaiting) throw tooManyRequests("too many large YAML bodies at once, please try again later", 1);
  return new Promise((resolve, reject) => {
    asked.push({ job, resolve, reject });
    if (asked.length === 1) send(job);
  });
}

function send(job: YamlJob): void {
  thread ??= newThread();
  thread.ref();
  thread.postMessage(job);
  startTimer(longestMs, () => lose(requestEntityTooLarge("the YAML takes too long to parse")));
}

/** Real time: what happens in another thread knows no clock of a test. */
function startTimer(ms: number, then: () => void): void {
  clearTimeout(timer);
  timer = setTimeout(then, ms);
  timer.unref();
}

function newThread(): Worker {
  const file = new URL(`./yaml-thread${extname(import.meta.url)}`, import.meta.url);
  const made = new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: heapMb } });
  made.on("message", (answer: YamlAnswer) => next((first) => first.resolve(answer)));
  made.on("error", () => {
    if (thread === made) lose(requestEntityTooLarge("the YAML takes too much memory to parse"));
  });
  return made;
}

/** The thread has no end, or has come to one; the next text gets a new one. */
function lose(err: Error): void {
  end();
  next((first) => first.reject(err));
}

function end(): void {
  clearTimeout(timer);
  void thread?.terminate();
  thread = undefined;
}

function next(tell: (first: Asked) => void): void {
  const first = asked.shift();
  const [following] = asked;
  if (following !== undefined) send(following.job);
  else {
    thread?.unref();
    startTimer(idleMs, end);
  }
  if (first !== undefined) tell(first);
}
