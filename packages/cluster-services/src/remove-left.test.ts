import assert from "node:assert/strict";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { ServicesFlags } from "./flags.ts";
import type { PartDefinition } from "./part.ts";
import { removeLeft } from "./remove-left.ts";

test("what parts have left that are off now is removed, after a failure too; parts that run keep theirs", async () => {
  const removed: string[] = [];
  const lines: string[] = [];
  const aPart = (name: string, left: boolean | Error): PartDefinition => ({
    ...{ name, runs: "node", onByDefault: true, rights: {} },
    load: () => Promise.reject(new Error("not to be loaded")),
    async removeLeft() {
      removed.push(name);
      if (left instanceof Error) throw left;
      return left;
    },
  });
  const all = [aPart("on", true), aPart("broken", new Error("no right")), aPart("left", true), aPart("nothing", false)];
  await removeLeft({} as ServicesFlags, {
    all,
    chosen: all.slice(0, 1),
    log: {
      ...discardLogger,
      info: (text: string, fields?: object) => void lines.push(`${text} ${JSON.stringify(fields)}`),
      error: (text: string, err: unknown) => void lines.push(`${text}: ${(err as Error).message}`),
    },
  });
  assert.deepEqual(removed, ["broken", "left", "nothing"]);
  assert.deepEqual(lines, [
    "cannot remove rules and files of an earlier process: no right",
    'removed rules and files of an earlier process {"part":"left"}',
  ]);
});
