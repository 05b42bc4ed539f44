import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { UiPages } from "./pages.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-ui-"));
after(() => rmSync(folder, { recursive: true }));
const page = `<title>${"x".repeat(2000)}</title>`;
writeFileSync(join(folder, "index.html"), page);
writeFileSync(join(folder, "font.woff2"), "font");
writeFileSync(join(folder, ".made-of"), "not for others");
const url = pathToFileURL(`${folder}/`);

interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

/** @returns undefined for a path that is not the page's */
function fetchPage(pages: UiPages, path: string, { method = "GET", headers = {} } = {}): Answer | undefined {
  let answer: Answer | undefined;
  const exchange = {
    method,
    url: path,
    headers,
    setHeader() {},
    respond(code: number, sent: Record<string, string>, body: Buffer | string = "") {
      answer = { code, headers: sent, body: Buffer.from(body) };
    },
  };
  const isHandled = pages.handle(exchange as unknown as Exchange);
  assert.equal(isHandled, answer !== undefined);
  return answer;
}

const pages = new UiPages(url, discardLogger);

for (const { path, code, type } of [
  { path: "/ui/", code: 200, type: "text/html; charset=utf-8" },
  { path: "/ui/?x=1", code: 200, type: "text/html; charset=utf-8" },
  { path: "/ui/index.html", code: 200, type: "text/html; charset=utf-8" },
  { path: "/ui/font.woff2", code: 200, type: "font/woff2" },
  { path: "/ui/.made-of", code: 404, type: "text/plain; charset=utf-8" },
  { path: "/ui/../pages.test.ts", code: 404, type: "text/plain; charset=utf-8" },
  { path: "/ui/%2e%2e/x", code: 404, type: "text/plain; charset=utf-8" },
  { path: "/ui/constructor", code: 404, type: "text/plain; charset=utf-8" },
]) {
  test(`answers ${path} with ${code}, and forbids everything that is not its own`, () => {
    const answer = fetchPage(pages, path);
    assert.equal(answer?.code, code);
    assert.equal(answer?.headers["content-type"], type);
    assert.match(answer?.headers["content-security-policy"] ?? "", /^default-src 'none'; script-src 'self'; /);
    assert.equal(answer?.headers["x-frame-options"], "DENY");
    assert.equal(answer?.headers["x-content-type-options"], "nosniff");
  });
}

for (const path of ["/", "/uid", "/uix/", "/api/ui/", "/UI/"]) {
  test(`leaves ${path} to the API`, () => assert.equal(fetchPage(pages, path), undefined));
}

test("leads from /ui to /ui/, also below a proxy's prefix", () => {
  const answer = fetchPage(pages, "/ui");
  assert.deepEqual([answer?.code, answer?.headers["location"]], [302, "ui/"]);
});

test("refuses methods other than GET and HEAD with 405", () => {
  assert.equal(fetchPage(pages, "/ui/", { method: "POST" })?.code, 405);
  assert.equal(fetchPage(pages, "/ui/", { method: "HEAD" })?.code, 200);
});

test("compresses text for clients that accept gzip, and no file that is compressed already", () => {
  const zipped = fetchPage(pages, "/ui/", { headers: { "accept-encoding": "br, gzip" } });
  assert.equal(zipped?.headers["content-encoding"], "gzip");
  assert.equal(gunzipSync(zipped?.body ?? "").toString(), page);
  for (const encoding of ["", "br", "gzip;q=0", "gzip;q=0.0"]) {
    const plain = fetchPage(pages, "/ui/", { headers: { "accept-encoding": encoding } });
    assert.deepEqual([plain?.headers["content-encoding"], plain?.body.toString()], [undefined, page], encoding);
  }
  const font = fetchPage(pages, "/ui/font.woff2", { headers: { "accept-encoding": "gzip" } });
  assert.deepEqual([font?.headers["content-encoding"], font?.body.toString()], [undefined, "font"]);
});

test("answers 304 without a body to a client that has the current file", () => {
  const tag = fetchPage(pages, "/ui/")?.headers["etag"] as string;
  const again = fetchPage(pages, "/ui/", { headers: { "if-none-match": `"other", ${tag}` } });
  assert.deepEqual([again?.code, again?.body.length, again?.headers["etag"]], [304, 0, tag]);
  assert.equal(fetchPage(pages, "/ui/", { headers: { "if-none-match": '"other"' } })?.code, 200);
});

test("answers 503 and says what to do when the page was not built", () => {
  const answer = fetchPage(new UiPages(pathToFileURL(`${folder}/missing/`), discardLogger), "/ui/");
  assert.equal(answer?.code, 503);
  assert.match(answer?.body.toString() ?? "", /cox build/);
});
