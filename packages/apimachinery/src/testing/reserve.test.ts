import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { freePort } from "./etcd.ts";
import { reserve } from "./reserve.ts";

const run = promisify(execFile);

/** @returns the output of another process that reserves the names one after the other */
async function elsewhere(...names: string[]): Promise<string> {
  const program = `const { reserve } = await import(${JSON.stringify(join(import.meta.dirname, "reserve.ts"))});
    console.log(${JSON.stringify(names)}.map(reserve).join());`;
  return (await run(process.execPath, ["-C", "cox-source", "-e", program])).stdout.trim();
}

test("a reservation of one process is free for another after the first has ended", async () => {
  const [mine, other] = [`mine-${process.pid}`, `other-${process.pid}`];
  assert.equal(reserve(mine), true);
  assert.equal(reserve(mine), false);
  assert.equal(await elsewhere(mine, other, other), "false,true,false");
  assert.equal(reserve(other), true);
});

test("a free port is reserved", async () => {
  assert.equal(reserve(`port-${await freePort()}`), false);
});
