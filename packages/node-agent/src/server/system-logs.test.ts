import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import files, { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { openFilesBelow } from "@coxswain/apimachinery/testing/open-files";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { rangeOf, serveSystemLogs } from "./system-logs.ts";

/** A folder of logs behind a server; the paths are those below /logs. */
async function serving(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "cox-system-logs-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const root = join(dir, "log");
  await mkdir(join(root, "pods/a<b"), { recursive: true });
  await mkdir(join(dir, "log-secret"));
  await writeFile(join(dir, "log-secret/key"), "secret");
  await writeFile(join(root, "syslog"), "one\ntwo\nthree\n");
  await writeFile(join(root, "binary"), Buffer.from([0, 1, 2]));
  await writeFile(join(root, "page.html"), "<script>");
  await writeFile(join(root, "a:b"), "");
  await writeFile(join(root, "pods/0.log"), "of a pod");
  await symlink("pods/0.log", join(root, "inside"));
  await symlink("../log-secret/key", join(root, "outside"));
  await symlink("../log-secret", join(root, "folder"));
  await symlink("circle", join(root, "circle"));
  spawnSync("mkfifo", [join(root, "fifo")]);
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    log: discardLogger,
    async handler(exchange) {
      const [path = "", query = ""] = exchange.url.split("?");
      const names = path.split("/").filter((one) => one !== "");
      await serveSystemLogs(exchange, root, names.map(decodeURIComponent), path.endsWith("/"), query);
    },
  });
  t.after(() => server.close());
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, { redirect: "manual", ...init });
  return { root, get };
}

test("a folder is a page of links, a file its text, a link to the outside 404", async (t) => {
  const { get } = await serving(t);
  const page = await get("/");
  assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
  const text = await page.text();
  assert.ok(text.startsWith('<pre>\n<a href="./a%3Ab">a:b</a>\n'), text);
  assert.ok(text.includes('<a href="pods/">pods/</a>\n') && text.endsWith("</pre>\n"), text);
  assert.ok((await (await get("/pods/")).text()).includes('<a href="a%3Cb/">a&lt;b/</a>\n'));
  const answers: Record<string, string> = {};
  for (const path of [
    "/syslog",
    "/inside",
    "/pods/0.log",
    "/outside",
    "/folder/key",
    "/circle",
    "/fifo",
    "/none",
    "/syslog/x",
    `/${"x".repeat(300)}`,
  ]) {
    const answer = await get(path);
    answers[path] = `${answer.status} ${await answer.text()}`;
  }
  const absent = "404 404 page not found\n";
  assert.deepEqual(answers, {
    "/syslog": "200 one\ntwo\nthree\n",
    "/inside": "200 of a pod",
    "/pods/0.log": "200 of a pod",
    "/outside": absent,
    "/folder/key": absent,
    "/circle": absent,
    "/fifo": absent,
    "/none": absent,
    "/syslog/x": absent,
    [`/${"x".repeat(300)}`]: absent,
  });
});

for (const { path, to } of [
  { path: "/pods", to: "pods/" },
  { path: "/pods/a%3Cb", to: "a%3Cb/" },
  { path: "/pods?x=1", to: "pods/?x=1" },
  { path: "/syslog/", to: "../syslog" },
  { path: "/pods/index.html", to: "./" },
]) {
  test(`${path} is redirected to ${to}`, async (t) => {
    const answer = await (await serving(t)).get(path);
    assert.deepEqual([answer.status, answer.headers.get("location")], [301, to]);
  });
}

test("range and conditional requests of a file are honoured; its type is never HTML", async (t) => {
  const { get, root } = await serving(t);
  const part = await get("/syslog", { headers: { range: "bytes=4-6" } });
  assert.deepEqual([part.status, part.headers.get("content-range"), await part.text()], [206, "bytes 4-6/14", "two"]);
  const beyond = await get("/syslog", { headers: { range: "bytes=14-" } });
  assert.deepEqual([beyond.status, beyond.headers.get("content-range")], [416, "bytes */14"]);
  const changed = part.headers.get("last-modified") ?? "";
  assert.equal((await get("/syslog", { headers: { "if-modified-since": changed } })).status, 304);
  assert.equal((await get("/syslog", { method: "POST" })).status, 405);
  assert.equal((await get("/page.html")).headers.get("content-type"), "text/plain; charset=utf-8");
  assert.equal((await get("/binary")).headers.get("content-type"), "application/octet-stream");
  for (const [at, type] of [
    [511, "application/octet-stream"],
    [512, "text/plain; charset=utf-8"],
  ] as const) {
    const bytes = Buffer.alloc(600, "a");
    bytes[at] = 0;
    await writeFile(join(root, "mixed"), bytes);
    assert.equal((await get("/mixed")).headers.get("content-type"), type, `a zero byte at ${at}`);
  }
  for (const [text, type] of [
    ["\u001b[31mred\u001b[0m\t\f\r\n", "text/plain; charset=utf-8"],
    ["\u0008", "application/octet-stream"],
    ["\u000b", "application/octet-stream"],
    ["\u000e", "application/octet-stream"],
    ["\u001c", "application/octet-stream"],
    ["\u001f", "application/octet-stream"],
    [" ", "text/plain; charset=utf-8"],
  ] as const) {
    await writeFile(join(root, "controls"), text);
    assert.equal((await get("/controls")).headers.get("content-type"), type, JSON.stringify(text));
  }
  await truncate(join(root, "syslog"), 0);
  assert.equal(await (await get("/syslog")).text(), "");
});

test("a folder that is replaced by a link during the request is not followed", async (t) => {
  const { get } = await serving(t);
  t.mock.method(files, "realpath", async (path: string) => path);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const answer = await get("/folder/key");
  assert.deepEqual([answer.status, await answer.text()], [404, "404 page not found\n"]);
});

for (const code of ["EACCES", "EPERM"]) {
  test(`a file whose opening fails with ${code} is forbidden`, async (t) => {
    const { get } = await serving(t);
    t.mock.method(files, "open", () => Promise.reject(Object.assign(new Error(code), { code })));
    syncBuiltinESMExports();
    t.after(() => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    });
    const answer = await get("/syslog");
    assert.deepEqual([answer.status, await answer.text()], [403, "403 Forbidden\n"]);
  });
}

test("a compressed file has its type, and no file stays open", async (t) => {
  const { get, root } = await serving(t);
  await writeFile(join(root, "old.gz"), gzipSync("old"));
  assert.equal((await get("/old.gz")).headers.get("content-type"), "application/x-gzip");
  for (const path of ["/", "/syslog", "/pods", "/none", "/outside", "/fifo"]) await (await get(path)).text();
  await waitFor(async () => (await openFilesBelow(root)).length === 0, { what: "the files to be closed" });
});

test("a file of many chunks arrives complete", async (t) => {
  const { get, root } = await serving(t);
  const body = Buffer.alloc(1_000_003, "0123456789");
  await writeFile(join(root, "large"), body);
  const answer = await get("/large");
  assert.equal(answer.headers.get("content-length"), String(body.length));
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(body));
});

for (const { header, want } of [
  { header: undefined, want: undefined },
  { header: "bytes=0-", want: { from: 0, to: 10 } },
  { header: "bytes=-3", want: { from: 7, to: 10 } },
  { header: "bytes=-30", want: { from: 0, to: 10 } },
  { header: "bytes=2-100", want: { from: 2, to: 10 } },
  { header: "bytes=5-4", want: "unsatisfiable" },
  { header: "bytes=-0", want: "unsatisfiable" },
  { header: "bytes=0-1,4-5", want: undefined },
  { header: "bytes=-", want: undefined },
] as const) {
  test(`of ten bytes ${header} are ${JSON.stringify(want)}`, () => assert.deepEqual(rangeOf(header, 10), want));
}
