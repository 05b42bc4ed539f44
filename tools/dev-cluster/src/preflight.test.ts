import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Failure } from "./failure.ts";
import { checkFolder, checkOwner, diskProblem, ownerProblem, whyNotWritable } from "./preflight.ts";

const me = userInfo().username;
const systemError = (code: string): Error => Object.assign(new Error(`${code}: no luck`), { code });

for (const { code, owner, user, want } of [
  {
    code: "EROFS",
    owner: 5,
    user: 7,
    want: "it is on a read-only file system; work in a clone elsewhere, or set COX_STATE to a folder elsewhere",
  },
  { code: "EACCES", owner: 0, user: 7, want: "it belongs to another user (uid 0); make a clone of your own" },
  { code: "EACCES", owner: 7, user: 7, want: "EACCES: no luck" },
  { code: "EACCES", owner: undefined, user: 7, want: "EACCES: no luck" },
  { code: "ENOSPC", owner: 0, user: 7, want: "ENOSPC: no luck" },
])
  test(`${code} in a folder of uid ${owner} is explained to uid ${user}`, () =>
    assert.equal(whyNotWritable(systemError(code), owner, user), want));

const belongs = (to: string): string => `the cluster in /s belongs to ${to}, not to ${me}; use it as ${to}: `;
for (const { owner, user, want } of [
  { owner: 7, user: 7, want: undefined },
  { owner: 7, user: 0, want: undefined },
  { owner: 0, user: 0, want: undefined },
  { owner: undefined, user: 7, want: undefined },
  { owner: 0, user: 7, want: `${belongs("root")}sudo ./cox down --name b` },
  { owner: 8, user: 7, want: `${belongs("uid 8")}sudo -u '#8' ./cox down --name b` },
])
  test(`uid ${user} ${want === undefined ? "may use" : "is refused"} the cluster of uid ${owner}`, () =>
    assert.equal(ownerProblem("/s", "down --name b", owner, user), want));

const mib = 1 << 20;
for (const [bavail, bsize, want] of [
  [512, mib, undefined],
  [256, 2 * mib, undefined],
  [512 * 256 - 1, mib / 256, "the disk of /s has 511 MiB left; 512 MiB are needed"],
  [0, 4096, "the disk of /s has 0 MiB left; 512 MiB are needed"],
] as const)
  test(`${bavail} free blocks of ${bsize} bytes are ${want === undefined ? "enough" : "too little"}`, () => {
    // What only root may use does not count.
    const disk = { bavail, bsize, bfree: 1e9, blocks: 1e9, type: 0, files: 0, ffree: 0 };
    assert.equal(diskProblem("/s", disk), want);
  });

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-preflight-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("a missing folder is made, for its owner and for those who know a file's name", (t) => {
  const state = join(folderFor(t), "a", "b");
  checkFolder(state);
  assert.equal(statSync(state).mode & 0o777, 0o711);
  checkFolder(state);
});

test("a folder that cannot be made or written fails with one line", (t) => {
  const folder = folderFor(t);
  const file = join(folder, "file");
  writeFileSync(file, "");
  assert.throws(
    () => checkFolder(join(file, "state")),
    (err) =>
      err instanceof Failure && err.exitCode === 1 && /^cannot write to \S+\/file\/state: E(NOTDIR|EXIST): .*$/.test(err.message),
  );
  const closed = join(folder, "closed");
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  if (process.getuid?.() !== 0) assert.throws(() => checkFolder(closed), /^Error: cannot write to \S+\/closed: EACCES/);
});

test("a folder that does not exist belongs to the owner of the nearest one that does", () => {
  const outcome = (path: string): string => {
    try {
      checkOwner(path, "status");
      return "";
    } catch (err) {
      return err instanceof Failure ? err.message : String(err);
    }
  };
  assert.equal(outcome("/no/such/folder"), outcome("/"));
  assert.equal(outcome(join(import.meta.dirname, "none", "none")), outcome(import.meta.dirname));
});
