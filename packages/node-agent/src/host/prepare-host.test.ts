import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { moveToCgroup } from "./prepare-host.ts";

test("the agent moves into the cgroup of --kubelet-cgroups, in every controller", async (t) => {
  const mountPoint = await mkdtemp(join(tmpdir(), "cox-own-cgroup-"));
  t.after(() => rm(mountPoint, { recursive: true, force: true }));
  for (const controller of ["cpu", "memory"]) {
    await mkdir(join(mountPoint, controller));
    await writeFile(join(mountPoint, controller, "cgroup.procs"), "");
  }
  await moveToCgroup("/system/kubelet", 4711, discardLogger, mountPoint);
  for (const controller of ["cpu", "memory"]) {
    assert.equal(await readFile(join(mountPoint, controller, "system/kubelet/cgroup.procs"), "utf8"), "4711");
  }
});
