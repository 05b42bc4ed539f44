/** Worker thread of `yaml-aside.ts`; processes jobs sequentially. */
import { parentPort } from "node:worker_threads";
import { requestEntityTooLarge, statusOf } from "../errors/status-error.ts";
import type { Status } from "../meta/types.ts";
import { encodeUntyped } from "./json.ts";
import { refuseManyValues } from "./json-parse.ts";
import { parseYaml } from "./yaml.ts";

export interface YamlJob {
  readonly text: string;
  /** Report duplicate keys of mappings. */
  readonly strict: boolean;
}

/** The result as JSON text, which is faster to parse than a structured clone; or the error. */
export type YamlAnswer = { readonly json: string; readonly repeated: readonly string[] } | { readonly failure: Status };

/** More than in real objects of 3 MiB; parsing them takes about two seconds. */
const maxTokens = 1_000_000;

function answerTo({ text, strict }: YamlJob): YamlAnswer {
  try {
    const repeated: string[] = [];
    const json = encodeUntyped(parseYaml(text, strict ? repeated : undefined, maxTokens));
    refuseManyValues(json);
    return { json: json.toString(), repeated };
  } catch (err) {
    const failure = err instanceof RangeError ? requestEntityTooLarge("the YAML is too large") : err;
    return { failure: statusOf(failure) };
  }
}

parentPort?.on("message", (job: YamlJob) => parentPort?.postMessage(answerTo(job)));
