import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { loadVolumeData, removeVolumeData, saveVolumeData } from "./volume-data.ts";

async function tempDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-volume-data-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test("what was written last is read, and nothing else is left beside it", async (t) => {
  const dir = join(await tempDir(t), "pv1");
  assert.equal(await loadVolumeData(dir), undefined);
  for (const volumeHandle of ["first", "second"]) await saveVolumeData(dir, { driverName: "d", volumeHandle });
  assert.deepEqual(
    [await loadVolumeData(dir), await readdir(dir)],
    [{ driverName: "d", volumeHandle: "second" }, ["vol_data.json"]],
  );
});

test("data that cannot be read is not taken for absent", async (t) => {
  const dir = join(await tempDir(t), "pv1");
  await mkdir(join(dir, "vol_data.json"), { recursive: true });
  await assert.rejects(loadVolumeData(dir), { code: "EISDIR" });
  await rm(dir, { recursive: true });
  await saveVolumeData(dir, { driverName: "d", volumeHandle: "h" });
  await writeFile(join(dir, "vol_data.json"), "{");
  await assert.rejects(loadVolumeData(dir), /^Error: failed to parse volume data file \[.*\/pv1\/vol_data\.json\]: /);
});

test("a half written file of a killed agent is removed with the directory; files of others keep it", async (t) => {
  const parent = await tempDir(t);
  const dir = join(parent, "pv1");
  await saveVolumeData(dir, { driverName: "d", volumeHandle: "h" });
  await writeFile(join(dir, "vol_data.json.tmp"), "{");
  await removeVolumeData(dir);
  assert.deepEqual(await readdir(parent), []);
  await removeVolumeData(dir);
  await saveVolumeData(dir, { driverName: "d", volumeHandle: "h" });
  await writeFile(join(dir, "file"), "");
  await assert.rejects(removeVolumeData(dir), /^Error: failed to remove dir \[.*\/pv1\]: ENOTEMPTY/);
});
