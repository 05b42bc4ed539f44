import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { aNodePod } from "../testing/builders.ts";
import { newVolumeUsages } from "./volume-usage.ts";

test("what volumes take is known from walk to walk, without what links lead to", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-usage-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const scratch = join(dir, "uid-1/volumes/kubernetes.io~empty-dir/scratch");
  await mkdir(join(scratch, "folder"), { recursive: true });
  await writeFile(join(scratch, "folder/file"), Buffer.alloc(100_000, 1));
  await symlink("/usr", join(scratch, "link"));
  const clock = newFakeClock();
  const usages = newVolumeUsages({ pods: () => [aNodePod()], podDir: (uid) => join(dir, uid), clock });
  assert.deepEqual(usages.of("uid-1"), []);
  await usages.refresh();
  const [usage, ...more] = usages.of("uid-1");
  assert.deepEqual([usage?.name, usage?.at, usage?.inodesUsed, more], ["scratch", clock.now(), 4, []]);
  assert.ok((usage?.usedBytes ?? 0) >= 100_000 && (usage?.usedBytes ?? 0) < 200_000, `${usage?.usedBytes} bytes`);
  assert.ok((usage?.capacityBytes ?? 0) > 0 && (usage?.availableBytes ?? 0) > 0);
  await writeFile(join(scratch, "more"), Buffer.alloc(200_000, 1));
  assert.ok((usages.of("uid-1")[0]?.usedBytes ?? 0) < 200_000, "nobody has walked yet");
  await usages.refresh();
  assert.ok((usages.of("uid-1")[0]?.usedBytes ?? 0) >= 300_000);
});
