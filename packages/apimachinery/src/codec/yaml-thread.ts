/** What runs in the thread of `yaml-aside.ts`: one text after the other. */
import { parentPort } from "node:worker_threads";
import { requestEntityTooLarge, statusOf } from "../errors/status-error.ts";
import type { Status } from "../meta/types.ts";
import { refuseManyValues } from "./body-cost.ts";
import { encodeUntyped } from "./json.ts";
import { parseYaml } from "./yaml.ts";

export interface YamlJob {
  readonly text: string;
  /** Whether to look for keys that a mapping has twice. */
  readonly strict: boolean;
}

/** JSON, which is read quicker than a value is copied; or why there is none. */
export type YamlAnswer = { readonly json: string; readonly repeated: readonly string[] } | { readonly failure: Status };

/** More than 3 MiB of any object that has ever been written; takes some two seconds. */
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
