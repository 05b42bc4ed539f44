import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { setConntrackTimeouts } from "./kernel-settings.ts";

const close = "nf_conntrack_tcp_timeout_close_wait";
const established = "nf_conntrack_tcp_timeout_established";
const day = { establishedMs: 86_400_000, closeWaitMs: 3_600_000 };

/** A folder like /proc/sys/net/netfilter, with the kernel's defaults unless the module is not loaded. */
function startKernel(t: TestContext, { isLoaded = true, canLoad = true } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "cox-conntrack-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const load = (): void => {
    writeFileSync(join(folder, established), "432000\n");
    writeFileSync(join(folder, close), "60\n");
  };
  if (isLoaded) load();
  const calls: string[] = [];
  const errors: string[] = [];
  const context = {
    folder,
    log: { ...discardLogger, error: (message: string) => void errors.push(message) },
    async run(program: string, args: readonly string[]) {
      calls.push([program, ...args].join(" "));
      if (!canLoad) throw new Error("modprobe: no such module");
      load();
      return "";
    },
  };
  return { context, calls, errors, read: (name: string) => readFileSync(join(folder, name), "utf8").trim() };
}

test("the timeouts of TCP connections are set, in seconds", async (t) => {
  const { context, read, calls } = startKernel(t);
  await setConntrackTimeouts(day, context);
  assert.deepEqual([read(established), read(close), calls], ["86400", "3600", []]);
});

test("0 leaves a timeout as it is", async (t) => {
  const { context, read } = startKernel(t);
  await setConntrackTimeouts({ ...day, establishedMs: 0 }, context);
  assert.deepEqual([read(established), read(close)], ["432000", "3600"]);
});

test("the module is loaded first where it is missing", async (t) => {
  const { context, read, calls } = startKernel(t, { isLoaded: false });
  await setConntrackTimeouts(day, context);
  assert.deepEqual([read(established), read(close), calls], ["86400", "3600", ["modprobe nf_conntrack"]]);
});

test("a kernel without connection tracking is an error in the log, and the rules are written all the same", async (t) => {
  const { context, errors } = startKernel(t, { isLoaded: false, canLoad: false });
  await setConntrackTimeouts(day, context);
  assert.deepEqual(errors, ["cannot set a kernel parameter", "cannot set a kernel parameter"]);
});
