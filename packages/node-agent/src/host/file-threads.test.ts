import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { addFileThreads } from "./file-threads.ts";

test("twenty calls that do not return leave threads for others", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "cox-threads-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const fifos = Array.from({ length: 20 }, (_, i) => join(dir, String(i)));
  execFileSync("mkfifo", fifos);
  // To open a FIFO for reading blocks until something opens it for writing.
  const script = `
    import { addFileThreads } from ${JSON.stringify(join(import.meta.dirname, "file-threads.ts"))};
    addFileThreads(process.env);
    const { open, stat } = await import("node:fs/promises");
    for (const fifo of ${JSON.stringify(fifos)}) void open(fifo, "r");
    await stat("/");
    process.stdout.write("done");
    setInterval(() => undefined, 1_000);`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const [text] = await once(child.stdout, "data", { signal: AbortSignal.timeout(60_000) });
  assert.equal(String(text), "done");
});

test("a number of threads that is set already stays", () => {
  const env = { UV_THREADPOOL_SIZE: "8" };
  addFileThreads(env);
  assert.equal(env.UV_THREADPOOL_SIZE, "8");
});
