/**
 * Parses large YAML in a worker thread: a megabyte takes half a second, which would block the event loop. There is one
 * thread, started on demand and stopped when idle. The number of queued jobs and the cost of each are limited.
 */
import { extname } from "node:path";
import type { Turns } from "../../process/event-loop/turns.ts";
import { JobError, newWorkerQueue } from "../../process/event-loop/worker-queue.ts";
import { badRequest, requestEntityTooLarge, StatusError, tooManyRequests } from "../errors/status-error.ts";
import { largeJsonBytes } from "./json.ts";
import { maxBodyValues, parseJsonInSteps, parseJsonText } from "./json-parse.ts";
import { looksLikeJson, parseYaml } from "./yaml.ts";
import type { YamlAnswer, YamlJob } from "./yaml-thread.ts";

/** Texts up to this many tokens (about 20 ms) are parsed in the calling thread. */
const tokensHere = 10_000;
const mostWaiting = 16;
/**
 * As `parseYaml`, for texts of any size that a request may have. Values from the worker have sorted keys, as upstream has
 * after its conversion to JSON. Large JSON may have no object of more fields than a request body may have values: to list the keys of
 * 500,000 takes 100 ms, whoever does it.
 * @param turns large JSON is parsed in; default: at once
 * @throws StatusError 400; 413 when parsing takes too much time or memory; 429 when too many texts are queued
 */
export async function parseYamlAside(text: string, repeated?: string[], turns?: Turns): Promise<unknown> {
  if (turns !== undefined && text.length > largeJsonBytes && looksLikeJson(text)) {
    const json = await parseJsonInTurns(text, turns);
    if (json !== undefined) return json.value;
  }
  try {
    return parseYaml(text, repeated, tokensHere);
  } catch (err) {
    if (!(err instanceof StatusError) || err.code !== 413) throw err;
  }
  const answer = await runJob({ text, strict: repeated !== undefined });
  if ("failure" in answer) throw new StatusError(answer.failure);
  repeated?.push(...answer.repeated);
  try {
    return parseJsonText(answer.json);
  } catch {
    throw badRequest("error converting YAML to JSON: yaml: exceeded max depth");
  }
}

/** @returns undefined for what is not JSON, or has duplicate keys */
async function parseJsonInTurns(text: string, turns: Turns): Promise<{ readonly value: unknown } | undefined> {
  let isRepeated = false;
  const onDuplicate = (): void => {
    isRepeated = true;
  };
  try {
    const value = await turns.run(parseJsonInSteps(text, { onDuplicate, maxFields: maxBodyValues }));
    return isRepeated ? undefined : { value };
  } catch (err) {
    if (err instanceof StatusError) throw err;
    return undefined;
  }
}

const thread = newWorkerQueue<YamlJob, YamlAnswer>({
  file: new URL(`./yaml-thread${extname(import.meta.url)}`, import.meta.url),
  heapMb: 768,
  // A job takes at most two seconds of CPU, as its tokens are limited. Waiting requests have their own deadlines.
  timeoutMs: 60_000,
  idleMs: 10_000,
});

async function runJob(job: YamlJob): Promise<YamlAnswer> {
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
