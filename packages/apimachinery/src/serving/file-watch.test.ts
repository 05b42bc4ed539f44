import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { settle, waitFor } from "../testing/wait-for.ts";
import { watchFiles } from "./file-watch.ts";

function watching(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "cox-file-watch-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const [first, second] = ["tls.crt", "tls.key"].map((name) => join(directory, name)) as [string, string];
  for (const path of [first, second]) writeFileSync(path, "1");
  const clock = newFakeClock();
  let changes = 0;
  const watcher = watchFiles([first, second], () => changes++, clock);
  t.after(() => watcher.close());
  /** Lets time pass until the changes were noticed. */
  const noticed = async (count: number): Promise<void> => {
    await waitFor(
      async () => {
        await clock.advance(60_000);
        return changes >= count;
      },
      { what: `change ${count}` },
    );
    await clock.advance(120_000);
    await settle();
    assert.equal(changes, count);
  };
  return { first, second, clock, watcher, noticed, changes: () => changes };
}

test("a change of any of the files is noticed once, the first one even if it follows at once", async (t) => {
  const { first, second, noticed } = watching(t);
  writeFileSync(first, "2");
  await noticed(1);
  writeFileSync(second, "2");
  await noticed(2);
  writeFileSync(`${second}.new`, "3");
  renameSync(`${second}.new`, second);
  await noticed(3);
  rmSync(first);
  await noticed(4);
});

test("each change is noticed by its own notification, not only at the next periodic look", async (t) => {
  const { first, clock, changes } = watching(t);
  for (const count of [1, 2, 3]) {
    writeFileSync(first, `${count} later`);
    await waitFor(() => clock.waiting === 2, { what: `notification ${count}`, timeoutMs: 20_000 });
    await clock.advance(100);
    await waitFor(() => changes() === count);
  }
});

test("a watcher that is closed while it reads a changed file does not report it", async (t) => {
  const { first } = watching(t);
  let look = (): void => assert.fail("no periodic look");
  const every = (_periodMs: number, fire: () => void) => {
    look = fire;
    return { cancel: () => {} };
  };
  let changes = 0;
  const watcher = watchFiles([first], () => changes++, { ...newFakeClock(), every });
  writeFileSync(first, "2");
  look();
  watcher.close();
  for (let i = 0; i < 5; i++) await readFile(first); // after those of the watcher
  await settle(50);
  assert.equal(changes, 0);
});

test("a closed watcher notices nothing and leaves no timer behind, not even of a change just before", async (t) => {
  const { first, clock, watcher, changes } = watching(t);
  writeFileSync(first, "2");
  // The periodic timer, and that of the notification where the file system has notifications.
  await waitFor(() => clock.waiting === 2, { what: "the notification", timeoutMs: 1000 }).catch(() => {});
  watcher.close();
  assert.equal(clock.waiting, 0);
  writeFileSync(first, "3");
  await clock.advance(60_000);
  await settle();
  assert.equal(changes(), 0);
});
