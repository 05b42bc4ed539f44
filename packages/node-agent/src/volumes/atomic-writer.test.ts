import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeAtomically } from "./atomic-writer.ts";

test("files have the modes that were asked for, whatever the umask", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-atomic-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const before = process.umask(0o077);
  t.after(() => void process.umask(before));
  const data = Buffer.from("x");
  const files = new Map([
    ["a", { data, mode: 0o644 }],
    ["sub/b", { data, mode: 0o400 }],
  ]);
  assert.equal(await writeAtomically(join(dir, "v"), files, 0), true);
  const modes = await Promise.all(["a", "sub/b", "..data/"].map(async (path) => (await stat(join(dir, "v", path))).mode & 0o777));
  assert.deepEqual(modes, [0o644, 0o400, 0o755]);
  assert.equal(await writeAtomically(join(dir, "v"), files, 1), false, "nothing has changed");
});

test("a path may be 4096 and a name 255 characters long, and no longer", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-atomic-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const file = { data: Buffer.from("x"), mode: 0o644 };
  const write = (path: string) => writeAtomically(join(dir, "v"), new Map([[path, file]]), 0);
  await write("n".repeat(255));
  await assert.rejects(write("n".repeat(256)), {
    message: "invalid path: filenames must be less than or equal to 255 characters",
  });
  await assert.rejects(write(`${"n/".repeat(2047)}nn`), { code: "ENAMETOOLONG" }, "the kernel's limit, not that of the API");
  await assert.rejects(write("n/".repeat(2048) + "n"), {
    message: "invalid path: must be less than or equal to 4096 characters",
  });
});

test("files that are no longer there are removed, all of them, and so are folders", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-atomic-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const file = { data: Buffer.from("x"), mode: 0o644 };
  const write = (...paths: string[]) => writeAtomically(join(dir, "v"), new Map(paths.map((path) => [path, file])), 0);
  const visible = async () => (await readdir(join(dir, "v"))).filter((name) => !name.startsWith("..")).toSorted();
  await write("a", "b", "c/d", "e");
  assert.deepEqual(await visible(), ["a", "b", "c", "e"]);
  await write("e");
  assert.deepEqual(await visible(), ["e"]);
  await write("f/g", "f/h");
  await write("f/g");
  assert.deepEqual(await readdir(join(dir, "v/f")), ["g"], "one of a folder of which others stay");
});
