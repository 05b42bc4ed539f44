import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { failingStat, openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { newRotatingFile } from "./rotating-file.ts";

/** A log of at most 10 bytes and one backup. */
async function aLog(
  t: TestContext,
  { name = "audit.log", ...more }: { name?: string; compress?: boolean; maxBackups?: number; maxAgeDays?: number } = {},
) {
  const dir = await mkdtemp(join(tmpdir(), "cox-rotating-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, name);
  const errors: unknown[] = [];
  const options = { path, maxBytes: 10, maxAgeDays: 0, maxBackups: 1, compress: false, ...more };
  const log = newRotatingFile(options, newFakeClock(), (err) => errors.push(err));
  t.after(() => log.close());
  return { dir, path, log, errors };
}

test("a write that follows the end of another at once is not left waiting", { timeout: 10_000 }, async (t) => {
  const { path, log } = await aLog(t);
  await log.write("1\n");
  await log.write("2\n");
  assert.equal(await readFile(path, "utf8"), "1\n2\n");
});

test("rotation loses no line when the file was removed", async (t) => {
  const { dir, path, log } = await aLog(t);
  await log.write("12345678\n");
  await rm(path);
  await log.write("abcdefgh\n");
  assert.equal(await readFile(path, "utf8"), "abcdefgh\n");
  assert.deepEqual(await readdir(dir), ["audit.log"]);
});

test("a backup that cannot be removed is reported, and the others are", async (t) => {
  const { dir, log, errors } = await aLog(t);
  const stuck = "audit-2021-02-01T00-00-00.000.log";
  await mkdir(join(dir, stuck));
  await writeFile(join(dir, "audit-2021-01-01T00-00-00.000.log"), "old");
  await log.write("12345678\n");
  await log.write("abcdefgh\n");
  await log.close();
  assert.deepEqual((await readdir(dir)).toSorted(), [stuck, "audit-2022-01-01T00-00-00.000.log", "audit.log"]);
  assert.equal(errors.length, 1);
});

const january = (day: number): string => `audit-2021-01-0${day}T00-00-00.000.log`;

test("a backup counts once while there is also its compressed form, of an earlier attempt", async (t) => {
  const { dir, log } = await aLog(t, { maxBackups: 3, compress: true });
  for (const name of [january(1), january(2), january(3), `${january(3)}.gz`]) await writeFile(join(dir, name), "old");
  for (const line of ["12345678\n", "abcdefgh\n"]) await log.write(line);
  await log.close();
  const kept = [january(2), january(3), "audit-2022-01-01T00-00-00.000.log"].map((name) => `${name}.gz`);
  assert.deepEqual((await readdir(dir)).toSorted(), [...kept, "audit.log"]);
});

test("backups are removed by their age, however few there are", async (t) => {
  const { dir, log } = await aLog(t, { maxBackups: 0, maxAgeDays: 2 });
  const [young, old] = ["audit-2021-12-30T00-00-00.000.log", "audit-2021-12-29T23-59-59.999.log"];
  for (const name of [young, old, january(1)]) await writeFile(join(dir, name), "old");
  for (const line of ["12345678\n", "abcdefgh\n"]) await log.write(line);
  await log.close();
  assert.deepEqual((await readdir(dir)).toSorted(), [young, "audit-2022-01-01T00-00-00.000.log", "audit.log"]);
});

test("a file is opened again after a write that failed", async (t) => {
  const { path, log } = await aLog(t);
  await symlink("/dev/full", path);
  await assert.rejects(log.write("1\n"), /ENOSPC/);
  await rm(path);
  await log.write("2\n");
  assert.equal(await readFile(path, "utf8"), "2\n");
});

test("a file whose size cannot be read does not stay open", async (t) => {
  const { dir, log } = await aLog(t);
  await failingStat(t);
  await assert.rejects(log.write("1\n"), /ESTALE/);
  assert.deepEqual(await openFilesBelow(dir), []);
});

test("the mode of a file is that of its successor", async (t) => {
  const { path, log } = await aLog(t);
  await log.write("12345678\n");
  await chmod(path, 0o640);
  await log.write("abcdefgh\n");
  assert.equal((await stat(path)).mode & 0o777, 0o640);
});

test("at the close all backups are compressed and cleaned up", async (t) => {
  const { dir, log } = await aLog(t, { compress: true });
  for (const text of ["12345678\n", "abcdefgh\n"]) await log.write(text);
  await log.close();
  assert.deepEqual((await readdir(dir)).toSorted(), ["audit-2022-01-01T00-00-00.000.log.gz", "audit.log"]);
});

test("the mode of a file is that of its compressed backup, too", async (t) => {
  const { dir, path, log } = await aLog(t, { compress: true });
  await log.write("12345678\n");
  await chmod(path, 0o640);
  await log.write("abcdefgh\n");
  await log.close();
  assert.equal((await stat(join(dir, "audit-2022-01-01T00-00-00.000.log.gz"))).mode & 0o777, 0o640);
});

test("the present size of a file counts towards its limit, also for lines that are written together", async (t) => {
  const { dir, path, log } = await aLog(t);
  await writeFile(path, "12\n");
  await Promise.all(["a\n", "bcd\n", "efg\n"].map((line) => log.write(line)));
  assert.equal(await readFile(path, "utf8"), "efg\n");
  assert.equal(await readFile(join(dir, "audit-2022-01-01T00-00-00.000.log"), "utf8"), "12\na\nbcd\n");
});

test("a line that fills a file to its very limit is still its own, the next one begins another file", async (t) => {
  const { dir, path, log } = await aLog(t);
  await log.write("1234\n");
  await log.write("5678\n");
  assert.deepEqual(await readdir(dir), ["audit.log"]);
  await log.write("9\n");
  assert.equal(await readFile(path, "utf8"), "9\n");
  assert.equal((await readdir(dir)).length, 2);
});

test("lines written together fill a file to its very limit, too", async (t) => {
  const { path, log } = await aLog(t);
  await Promise.all(["1234\n", "5678\n", "9\n"].map((line) => log.write(line)));
  assert.equal(await readFile(path, "utf8"), "9\n");
});

for (const [name, backup] of [
  ["audit.log", "audit-2022-01-01T00-00-00.000.log"],
  ["audit", "audit-2022-01-01T00-00-00.000"],
  [".log", "-2022-01-01T00-00-00.000.log"],
  ["audit.a.log", "audit.a-2022-01-01T00-00-00.000.log"],
] as const) {
  test(`backups of ${name} have the time before its extension`, async (t) => {
    const { dir, log } = await aLog(t, { name });
    for (const line of ["12345678\n", "abcdefgh\n"]) await log.write(line);
    await log.close();
    assert.deepEqual((await readdir(dir)).toSorted(), [backup, name].toSorted());
  });
}

test("files that are no backups stay, whatever their names begin and end with", async (t) => {
  const { dir, log } = await aLog(t, { maxAgeDays: 1 });
  const others = [
    "audit-2021.log",
    "audit-2021-13-01T00-00-00.000.log",
    "audit-x2021-01-01T00-00-00.000.log",
    "audit-.log",
    "other-2021-01-01T00-00-00.000.log",
    "audit-2021-01-01T00-00-00.000.txt",
  ];
  for (const other of [...others, january(1)]) await writeFile(join(dir, other), "old");
  for (const line of ["12345678\n", "abcdefgh\n"]) await log.write(line);
  await log.close();
  assert.deepEqual((await readdir(dir)).toSorted(), [...others, "audit-2022-01-01T00-00-00.000.log", "audit.log"].toSorted());
});
