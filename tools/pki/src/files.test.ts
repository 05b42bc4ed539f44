import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { PkiError, writeWhole } from "./files.ts";

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-pki-files-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder with `real/deep/file`, mode 0640, and `links`, which leads to `real/deep`. */
function aTree(t: TestContext): { folder: string; file: string } {
  const folder = aFolder(t);
  const file = join(folder, "real/deep/file");
  mkdirSync(join(folder, "real/deep"), { recursive: true });
  writeFileSync(file, "old", { mode: 0o640 });
  symlinkSync("real/deep", join(folder, "links"));
  return { folder, file };
}

for (const { name, links, path } of [
  { name: "a file", links: {}, path: "real/deep/file" },
  { name: "a file in a folder that is a link", links: {}, path: "links/file" },
  { name: "a link to a file", links: { link: "real/deep/file" }, path: "link" },
  { name: "a link to a link", links: { "real/second": "deep/file", first: "real/second" }, path: "first" },
  {
    name: "a link to the folder above, in a folder that is a link",
    links: { "real/deep/up": "../back", "real/back": "deep/file" },
    path: "links/up",
  },
  {
    name: "a link through a folder that is a link, and up from there",
    links: { "real/back": "deep/file", link: "links/../back" },
    path: "link",
  },
]) {
  test(`${name}: the file is replaced and keeps its mode, links and folders stay`, (t) => {
    const { folder, file } = aTree(t);
    for (const [link, target] of Object.entries(links)) symlinkSync(target, join(folder, link));
    const before = statSync(file).ino;
    writeWhole(join(folder, path), "new", 0o600);
    assert.equal(readFileSync(file, "utf8"), "new");
    assert.notEqual(statSync(file).ino, before);
    assert.equal(statSync(file).mode & 0o777, 0o640);
    for (const link of ["links", ...Object.keys(links)]) assert.ok(lstatSync(join(folder, link)).isSymbolicLink(), link);
    assert.deepEqual(
      readdirSync(join(folder, "real/deep")).filter((entry) => entry.startsWith(".")),
      [],
    );
  });
}

test("an absolute link leads to its file, and a link to nothing is replaced", (t) => {
  const { folder, file } = aTree(t);
  symlinkSync(file, join(folder, "absolute"));
  writeWhole(join(folder, "absolute"), "new", 0o600);
  assert.equal(readFileSync(file, "utf8"), "new");
  symlinkSync("missing", join(folder, "dangling"));
  writeWhole(join(folder, "dangling"), "new", 0o600);
  assert.ok(lstatSync(join(folder, "dangling")).isFile());
});

test("a cycle of links is refused by name, and nothing is written", (t) => {
  const folder = aFolder(t);
  symlinkSync("b", join(folder, "a"));
  symlinkSync("a", join(folder, "b"));
  assert.throws(
    () => writeWhole(join(folder, "a"), "new", 0o600),
    (err) => err instanceof PkiError && /^cannot write \S+\/a: ELOOP: too many symbolic links/.test(err.message),
  );
  assert.deepEqual(readdirSync(folder).toSorted(), ["a", "b"]);
});

test("through /proc/<pid>/root the file in that process's root is replaced, not the one of the same name outside", async (t) => {
  const folder = aFolder(t);
  const here = join(folder, "file");
  writeFileSync(here, "here");
  // The child mounts another file system over the folder, in its own mount namespace, with a file and a link of the same names.
  symlinkSync("file", join(folder, "link"));
  const script = `mount -t tmpfs none "$1" && cd "$1" && printf there >file && ln -s file link && echo ready && exec sleep 600`;
  const child = execFile("setpriv", ["--pdeathsig", "KILL", "unshare", "--mount", "sh", "-ec", script, "sh", folder]);
  t.after(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout?.on("data", (chunk: string) => (output += chunk));
  await waitFor(() => output === "ready\n", { what: "the other mount namespace" });
  const there = (name: string): string => join(`/proc/${child.pid}/root`, folder, name);
  assert.equal(readFileSync(there("file"), "utf8"), "there");
  for (const name of ["file", "link"]) {
    writeWhole(there(name), `new by ${name}`, 0o600);
    assert.equal(readFileSync(there("file"), "utf8"), `new by ${name}`);
    assert.equal(readFileSync(here, "utf8"), "here");
  }
  assert.ok(lstatSync(there("link")).isSymbolicLink());
});
