/**
 * Parses large YAML in a thread of its own: a megabyte takes half a second, in which nobody else would be served. There
 * is one thread, begun when it is needed and ended when it is not; what waits for it is limited, and so is what one text
 * may take.
 */
import { extname } from "node:path";
import { badRequest, requestEntityTooLarge, StatusError, tooManyRequests } from "../errors/status-error.ts";
import { JobError, newWorkerQueue } from "../event-loop/worker-queue.ts";
import { parseJsonText } from "./json-parse.ts";
import { parseYaml } from "./yaml.ts";
import type { YamlAnswer, YamlJob } from "./yaml-thread.ts";

/** Some 20 ms of work: not worth a thread. */
const tokensHere = 10_000;
const mostWaiting = 16;
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

const thread = newWorkerQueue<YamlJob, YamlAnswer>({
  file: new URL(`./yaml-thread${extname(import.meta.url)}`, import.meta.url),
  heapMb: 768,
  // None takes more than two seconds of work (its tokens are limited). Who waits meanwhile has a deadline of their own.
  timeoutMs: 60_000,
  idleMs: 10_000,
});

async function ask(job: YamlJob): Promise<YamlAnswer> {
  if (thread.size >= mostWaiting) throw tooManyRequests("too many large YAML bodies at once, please try again later", 1);
  try {
    return await thread.run(job);
  } catch (err) {
    if (!(err instanceof JobError)) throw err;
    throw requestEntityTooLarge(
      err.reason === "timeout" ? "the YAML takes too long to parse" : "the YAML takes too much memory to parse",
    );
  }
}
