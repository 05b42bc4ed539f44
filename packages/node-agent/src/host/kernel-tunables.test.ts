import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { setKernelTunables } from "./kernel-tunables.ts";

const wanted = {
  "vm/overcommit_memory": "1",
  "vm/panic_on_oom": "0",
  "kernel/panic": "10",
  "kernel/panic_on_oops": "1",
  "kernel/keys/root_maxkeys": "1000000",
  "kernel/keys/root_maxbytes": "25000000",
};

async function kernel(t: TestContext, values: Record<string, string>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-sysctl-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [flag, value] of Object.entries(values)) {
    await mkdir(dirname(join(dir, flag)), { recursive: true });
    await writeFile(join(dir, flag), `${value}\n`);
  }
  return dir;
}

test("kernel flags that differ are set", async (t) => {
  const dir = await kernel(t, { ...wanted, "vm/overcommit_memory": "0", "kernel/panic": "0" });
  await setKernelTunables({ protect: false, log: discardLogger, dir });
  for (const [flag, value] of Object.entries(wanted)) assert.equal((await readFile(join(dir, flag), "utf8")).trim(), value, flag);
});

test("an unreadable kernel flag does not prevent setting the others, and is an error with --protect-kernel-defaults", async (t) => {
  const dir = await kernel(t, { ...wanted, "kernel/keys/root_maxbytes": "1", "kernel/panic": "0" });
  await rm(join(dir, "vm/overcommit_memory"));
  await setKernelTunables({ protect: false, log: discardLogger, dir });
  for (const flag of ["kernel/panic", "kernel/keys/root_maxbytes"] as const)
    assert.equal((await readFile(join(dir, flag), "utf8")).trim(), wanted[flag]);
  await writeFile(join(dir, "kernel/panic"), "0");
  await assert.rejects(
    setKernelTunables({ protect: true, log: discardLogger, dir }),
    /\[ENOENT.*, invalid kernel flag: kernel\/panic, /,
  );
});

test("with --protect-kernel-defaults kernel flags that differ are an error and are not changed", async (t) => {
  const dir = await kernel(t, { ...wanted, "vm/overcommit_memory": "0" });
  const problem = "invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0";
  const start = (): Promise<void> => setKernelTunables({ protect: true, log: discardLogger, dir });
  await assert.rejects(start, { message: `failed to start ContainerManager: ${problem}` });
  assert.equal((await readFile(join(dir, "vm/overcommit_memory"), "utf8")).trim(), "0");
  await writeFile(join(dir, "kernel/panic"), "1");
  await assert.rejects(start, {
    message: /: \[invalid kernel flag: vm\/overcommit_memory, .*, invalid kernel flag: kernel\/panic, /,
  });
  for (const [flag, value] of Object.entries(wanted)) await writeFile(join(dir, flag), value);
  await start();
});

test("a kernel flag that cannot be set is logged, and those behind it are set", async (t) => {
  const dir = await kernel(t, { ...wanted, "kernel/keys/root_maxbytes": "1" });
  await rm(join(dir, "vm/overcommit_memory"));
  await symlink("/proc/version", join(dir, "vm/overcommit_memory")); // can be read, not written, also not by root
  const errors: unknown[] = [];
  const log = { ...discardLogger, error: (text: string, _: unknown, fields?: object) => void errors.push([text, fields]) };
  await setKernelTunables({ protect: false, log, dir });
  assert.deepEqual(errors, [["Updating kernel flag failed", { flag: "vm/overcommit_memory" }]]);
  assert.equal(await readFile(join(dir, "kernel/keys/root_maxbytes"), "utf8"), "25000000");
});
