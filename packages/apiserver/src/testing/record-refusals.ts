/**
 * For `node --import`: records which source lines created field errors, as `<file>:<line>:<column>`, and writes them at exit to
 * the file named by RECORD_REFUSALS_TO.
 */
import { writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { refusals } from "./refusal-sites.ts";

const places = new Set<string>();

/** Place of the call of a recorded function. Of three frames only: some tests make a hundred thousand field errors. */
function callerOf(): string | undefined {
  const usual = Error.stackTraceLimit;
  Error.stackTraceLimit = 3;
  const [, , , caller = ""] = (new Error().stack ?? "").split("\n");
  Error.stackTraceLimit = usual;
  return /(file:\/\/.*:\d+:\d+)\)?$/.exec(caller)?.[1];
}

/** The instrumented field-error module calls this global. */
Object.assign(globalThis, {
  recordRefusals:
    (refuse: (...parts: unknown[]) => unknown) =>
    (...parts: unknown[]): unknown => {
      const place = callerOf();
      if (place !== undefined) places.add(place);
      return refuse(...parts);
    },
});

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith("/errors/field-error.ts")) return loaded;
    const wrapped = refusals.map((name) => `${name} = recordRefusals(${name});`);
    return { ...loaded, source: `${loaded.source}\n${wrapped.join("\n")}` };
  },
});

process.on("exit", () => {
  const files = [...places].map((place) => {
    const [, url = "", position = ""] = /^(.*)(:\d+:\d+)$/.exec(place) ?? [];
    return fileURLToPath(url) + position;
  });
  writeFileSync(process.env["RECORD_REFUSALS_TO"] as string, files.join("\n"));
});
