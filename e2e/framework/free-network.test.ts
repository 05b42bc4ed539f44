import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { lstatSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { freeNetwork } from "./free-network.ts";

const run = promisify(execFile);
const linkOf = (network: string): string => join(tmpdir(), `cox-test-network-${network}`);

test("a network is not assigned twice, not even to another process, until its owner has ended", async () => {
  const numbers = [1, 2, 3].map(() => freeNetwork("240", 1, 4).split(".")[1]);
  assert.deepEqual(numbers.toSorted(), ["1", "2", "3"]);
  assert.throws(() => freeNetwork("240", 1, 4), /^Error: no network from 240\.1\.0\.0\/16 to 240\.3\.0\.0\/16 is free$/);
  const program = `const { freeNetwork } = await import(${JSON.stringify(join(import.meta.dirname, "free-network.ts"))});
    try { console.log(freeNetwork("240", 1, 4)) } catch (err) { console.log(err.message) }
    console.log(freeNetwork("240", 4, 5));`;
  const { stdout } = await run(process.execPath, ["-C", "cox-source", "-e", program]);
  assert.equal(stdout, "no network from 240.1.0.0/16 to 240.3.0.0/16 is free\n240.4\n");
  assert.equal(freeNetwork("240", 4, 5), "240.4");
});

test("a reservation that a killed process left is taken over", () => {
  symlinkSync("999999999", linkOf("240.9"));
  assert.equal(freeNetwork("240", 9, 10), "240.9");
  assert.ok(lstatSync(linkOf("240.9")).isSymbolicLink());
});
