import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { mkdir, mkdtemp, open, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { discardLogger, type Logger } from "@coxswain/apimachinery/process/logging/logger";
import { aNodePod } from "../testing/builders.ts";
import { setVolumeOwnership } from "./ownership.ts";

const pod = aNodePod({ securityContext: { fsGroup: 1234, fsGroupChangePolicy: "OnRootMismatch" } });
const options = { readOnly: false, policy: true, plugin: "p", operations: () => () => undefined };

test("a volume whose files cannot change their group is used as it is, and each refusal is logged", async () => {
  const kernel = "/proc/sys/fs/inotify"; // refuses any owner and mode
  const refused: unknown[] = [];
  const log: Logger = { ...discardLogger, error: (_message, _err, fields) => void refused.push(fields?.["path"]) };
  await setVolumeOwnership(kernel, pod, { ...options, log });
  const all = [...(await readdir(kernel)).map((name) => join(kernel, name)), kernel];
  assert.deepEqual(refused.toSorted(), [...all, ...all].toSorted()); // of the group, and of the mode
});

test("the root of a volume is left for last, so that a walk that fails is not skipped with OnRootMismatch", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const volume = await mkdtemp(join(tmpdir(), "cox-ownership-"));
  t.after(() => rm(volume, { recursive: true, force: true }));
  const end = await tooDeep(volume);
  await assert.rejects(setVolumeOwnership(volume, pod, { ...options, log: discardLogger }), { code: "ENAMETOOLONG" });
  assert.equal((await stat(volume)).gid, 0);
  end();
  await mkdir(join(volume, "a"));
  await setVolumeOwnership(volume, pod, { ...options, log: discardLogger });
  const root = statSync(volume); // at once: the last change has ended
  assert.deepEqual([root.gid, root.mode & 0o7777, (await stat(join(volume, "a"))).gid], [1234, 0o2770, 1234]);
});

test("files whose names are not UTF-8 get the group", { skip: process.getuid?.() !== 0 && "needs root" }, async (t) => {
  const volume = await mkdtemp(join(tmpdir(), "cox-ownership-"));
  t.after(() => rm(volume, { recursive: true, force: true }));
  const file = Buffer.concat([Buffer.from(`${volume}/`), Buffer.of(0xff, 0xfe)]);
  await writeFile(file, "");
  await setVolumeOwnership(volume, pod, { ...options, log: discardLogger });
  assert.equal((await stat(file)).gid, 1234);
});

/** Makes folders below `dir` whose path is too long for a system call. Returns a function that deletes them. */
async function tooDeep(dir: string): Promise<() => void> {
  const name = "d".repeat(250);
  let at = await open(dir);
  for (let depth = 0; depth < 17; depth++) {
    const next = `/proc/self/fd/${at.fd}/${name}`;
    await mkdir(next);
    const deeper = await open(next);
    await at.close();
    at = deeper;
  }
  await at.close();
  return () => execFileSync("rm", ["-rf", join(dir, name)]);
}
