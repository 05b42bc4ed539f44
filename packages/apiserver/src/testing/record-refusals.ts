/**
 * For `node --import`: writes down which lines of source refused a field, `<file>:<line>:<column>` each, into the file
 * that RECORD_REFUSALS_TO names, when the process ends.
 */
import { writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { refusals } from "./refusal-sites.ts";

const places = new Set<string>();

/** Under this name the module of the refusals finds it. */
Object.assign(globalThis, {
  recordRefusals:
    (refuse: (...parts: unknown[]) => unknown) =>
    (...parts: unknown[]): unknown => {
      const [, , caller = ""] = (new Error().stack ?? "").split("\n");
      const [, place] = /(file:\/\/.*:\d+:\d+)\)?$/.exec(caller) ?? [];
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
