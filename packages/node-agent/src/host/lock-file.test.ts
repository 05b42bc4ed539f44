import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { acquireLockFile } from "./lock-file.ts";

test("one agent at a time holds the lock file; the one that holds it hears of another that wants it", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-lock-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "kubelet.lock");
  const clock = newFakeClock();
  const first = await acquireLockFile(path, { clock, log: discardLogger });
  let contended = false;
  const watching = first.contended(new AbortController().signal).then(() => {
    contended = true;
  });
  await waitFor(() => clock.waiting > 0, { what: "the first look" });
  assert.equal(contended, false);
  let acquired = false;
  const second = acquireLockFile(path, { clock, log: discardLogger }).then((lock) => {
    acquired = true;
    return lock;
  });
  await waitFor(
    async () => {
      await clock.advance(1_000);
      return contended;
    },
    { what: "the second agent to be seen" },
  );
  assert.equal(acquired, false, "the first one still holds it");
  await first.release();
  await (await second).release();
  await watching;
});

test("a lock file that cannot be opened is an error that names it", async () => {
  const path = "/no/such/folder/kubelet.lock";
  await assert.rejects(acquireLockFile(path, { clock: newFakeClock(), log: discardLogger }), {
    message: /^unable to acquire file lock on "\/no\/such\/folder\/kubelet\.lock": ENOENT/,
  });
});
