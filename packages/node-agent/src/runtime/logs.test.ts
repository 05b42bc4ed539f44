import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { appendFileSync, renameSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { failingStat, openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { formatLine, type LogOptions, type LogSource, readLog, readLogTail } from "./logs.ts";

async function tempDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-logs-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

const line = (second: number, text: string, tag = "F", stream = "stdout"): string =>
  `2026-01-01T00:00:0${second}.123456789Z ${stream} ${tag} ${text}\n`;

async function read(source: LogSource, options: LogOptions = {}): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of readLog(source, options)) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

const content = [line(1, "one"), line(2, "two ", "P"), line(3, "parts"), line(4, "err", "F", "stderr"), line(5, "")].join("");

for (const { name, options, want } of [
  { name: "everything", options: {}, want: "one\ntwo parts\nerr\n\n" },
  { name: "the last two lines", options: { tailLines: 2 }, want: "err\n\n" },
  { name: "no lines", options: { tailLines: 0 }, want: "" },
  { name: "more lines than there are", options: { tailLines: 99 }, want: "one\ntwo parts\nerr\n\n" },
  { name: "lines since the given time", options: { since: Date.parse("2026-01-01T00:00:04Z") }, want: "err\n\n" },
  { name: "at most limitBytes bytes", options: { limitBytes: 6 }, want: "one\ntw" },
  {
    name: "the time of each line",
    options: { timestamps: true, tailLines: 2 },
    want: "2026-01-01T00:00:04.123456789Z err\n2026-01-01T00:00:05.123456789Z \n",
  },
] as { name: string; options: LogOptions; want: string }[]) {
  test(`a log shows ${name}`, async (t) => {
    const path = join(await tempDir(t), "0.log");
    await writeFile(path, content);
    assert.equal(await read({ path }, options), want);
  });
}

test("a line of up to 1 MiB is shown, a longer one is skipped", async (t) => {
  const path = join(await tempDir(t), "0.log");
  const head = line(1, "").length - 1;
  const text = "x".repeat(1024 * 1024 - head);
  await writeFile(path, line(1, text) + line(2, "next"));
  assert.ok((await read({ path })) === `${text}\nnext\n`);
  await writeFile(path, line(1, `${text}${"y".repeat(100_000)}`) + line(2, "next"));
  assert.ok((await read({ path })) === "next\n");
});

test("lines that are not in the CRI log format are skipped", () => {
  for (const text of ["", "x", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z neither F text", "yesterday stdout F text"]) {
    assert.equal(formatLine(Buffer.from(text), {}), undefined, text);
  }
});

for (const { written, want } of [
  { written: "2026-01-01T00:00:00.12Z", want: "2026-01-01T00:00:00.120000000Z" },
  { written: "2026-01-01T00:00:00+02:00", want: "2026-01-01T00:00:00.000000000+02:00" },
]) {
  test(`the time ${written} is shown with all its digits`, () => {
    const shown = formatLine(Buffer.from(`${written} stdout F text`), { timestamps: true });
    assert.equal(shown?.toString(), `${want} text\n`);
  });
}

test("long logs are read whole and tailed from the end", async (t) => {
  const path = join(await tempDir(t), "0.log");
  const lines = Array.from({ length: 5000 }, (_, i) => line(1, `line ${i} ${"x".repeat(50)}`));
  await writeFile(path, lines.join(""));
  assert.equal((await read({ path })).split("\n").length, 5001);
  assert.equal(await read({ path }, { tailLines: 1 }), `line 4999 ${"x".repeat(50)}\n`);
  assert.equal((await read({ path }, { tailLines: 3000 })).split("\n").length, 3001);
  assert.equal((await readLogTail(path, 80, 100)).length, 100);
});

test("following a log continues across rotation and ends with the container", async (t) => {
  const dir = await tempDir(t);
  const path = join(dir, "0.log");
  await writeFile(path, line(1, "one"));
  let running = true;
  let got = "";
  const done = (async () => {
    for await (const piece of readLog({ path, isRunning: async () => running }, { follow: true })) got += piece;
  })();
  await waitFor(() => got === "one\n");
  await appendFile(path, line(2, "two"));
  await waitFor(() => got === "one\ntwo\n");
  await rename(path, `${path}.old`);
  await writeFile(path, line(3, "three"));
  await waitFor(() => got === "one\ntwo\nthree\n");
  running = false;
  await done;
});

test("an incomplete last line of a rotated log is not put before the first line of the next file", async (t) => {
  const path = join(await tempDir(t), "0.log");
  await writeFile(path, `${line(1, "one")}${line(2, "half").trimEnd()}`);
  let running = true;
  let got = "";
  const done = (async () => {
    for await (const piece of readLog({ path, isRunning: async () => running }, { follow: true })) got += piece;
  })();
  await waitFor(() => got === "one\n");
  await rename(path, `${path}.old`);
  await writeFile(path, line(3, "three"));
  await waitFor(() => got.includes("three"));
  running = false;
  await done;
  assert.equal(got, "one\nthree\n");
});

test("the last lines before a rotation are read, also when they are written during a poll", async (t) => {
  const log = join(await tempDir(t), "0.log");
  await writeFile(log, line(1, "one"));
  let due = false;
  let running = true;
  let got = "";
  const source = {
    // Appends after the container's state was queried and before the old file is examined.
    isRunning: async () => {
      due = got === "one\n";
      return running;
    },
    get path() {
      if (due) {
        appendFileSync(log, line(2, "two"));
        renameSync(log, `${log}.old`);
        writeFileSync(log, line(3, "three"));
        due = false;
      }
      return log;
    },
  };
  const done = (async () => {
    for await (const piece of readLog(source, { follow: true })) got += piece;
  })();
  await waitFor(() => got.includes("three\n"));
  assert.equal(got, "one\ntwo\nthree\n");
  running = false;
  await done;
});

test("following ends with the limit of bytes, though the container runs on", async (t) => {
  const path = join(await tempDir(t), "0.log");
  await writeFile(path, line(1, "one"));
  const source = { path, isRunning: async () => true };
  assert.equal(await read(source, { follow: true, limitBytes: 4 }), "one\n");
});

test("lines of exactly the given time are shown, and a partial line may have more tags", () => {
  const written = Buffer.from("2026-01-01T00:00:04Z stdout P:x text");
  const shown = (since: string) => formatLine(written, { since: Date.parse(since) })?.toString();
  assert.deepEqual([shown("2026-01-01T00:00:04Z"), shown("2026-01-01T00:00:04.001Z")], ["text", undefined]);
});

test("following leaves neither watchers, listeners nor files of rotated logs", async (t) => {
  const watchers = () => process.getActiveResourcesInfo().filter((kind) => kind === "FSEventWrap").length;
  await waitFor(() => watchers() === 0, { what: "the end of those of earlier tests" });
  const dir = await tempDir(t);
  const path = join(dir, "0.log");
  await writeFile(path, line(1, "one"));
  const { signal } = new AbortController();
  let running = true;
  let looks = 0;
  let got = "";
  const isRunning = async (): Promise<boolean> => {
    looks++;
    return running;
  };
  const done = (async () => {
    for await (const piece of readLog({ path, isRunning, signal }, { follow: true })) got += piece;
  })();
  await waitFor(() => looks > 2);
  await rename(path, `${path}.old`);
  await writeFile(path, line(2, "two"));
  await waitFor(() => got === "one\ntwo\n");
  const seen = looks;
  await waitFor(() => looks > seen);
  assert.deepEqual([await openFilesBelow(dir), getEventListeners(signal, "abort").length <= 1], [[path], true]);
  running = false;
  await done;
  await waitFor(() => watchers() === 0);
  assert.deepEqual([await openFilesBelow(dir), getEventListeners(signal, "abort")], [[], []]);
});

test("following ends when the client disconnects", async (t) => {
  const path = join(await tempDir(t), "0.log");
  await writeFile(path, "");
  const controller = new AbortController();
  const done = read({ path, isRunning: async () => true, signal: controller.signal }, { follow: true });
  controller.abort();
  assert.equal(await done, "");
});

test("a log that is a symlink, or below one, cannot show files of the host, nor of a folder whose name begins alike", async (t) => {
  const dir = await tempDir(t);
  const root = join(dir, "pods");
  await mkdir(join(root, "real"), { recursive: true });
  await mkdir(join(dir, "outside"));
  await writeFile(join(dir, "outside", "0.log"), line(1, "secret"));
  await symlink(join(dir, "outside", "0.log"), join(root, "real", "0.log"));
  await symlink(join(dir, "outside"), join(root, "linked"));
  await assert.rejects(read({ path: join(root, "real", "0.log"), root }), { code: "ELOOP" });
  await assert.rejects(read({ path: join(root, "linked", "0.log"), root }), { code: "EACCES" });
  await assert.rejects(read({ path: join(root, "none.log"), root }), { code: "ENOENT" });
  await mkdir(join(dir, "pods-of-others"));
  await writeFile(join(dir, "pods-of-others", "0.log"), line(1, "secret"));
  await symlink(join(dir, "pods-of-others"), join(root, "beside"));
  await assert.rejects(read({ path: join(root, "beside", "0.log"), root }), { code: "EACCES" });
});

test("a log whose state cannot be read does not stay open", async (t) => {
  const dir = await tempDir(t);
  const path = join(dir, "0.log");
  await writeFile(path, line(1, "one"));
  await failingStat(t);
  await assert.rejects(read({ path }), { code: "ESTALE" });
  assert.deepEqual(await openFilesBelow(dir), []);
});

test("what is no file is not read as a log, and does not stay open; it has no last lines, nor has a missing one", async (t) => {
  const dir = await tempDir(t);
  const path = join(dir, "0.log");
  await mkdir(path);
  await assert.rejects(read({ path }), { code: "EACCES", message: `log ${path} is not a regular file` });
  assert.deepEqual(await openFilesBelow(dir), []);
  for (const each of [path, join(dir, "none.log")]) assert.equal(await readLogTail(each, 10, 1000), "");
});
