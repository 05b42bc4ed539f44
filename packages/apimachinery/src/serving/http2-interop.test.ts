/** Interoperability with other HTTP/2 clients: Node's and curl's. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { accessSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect, type Settings } from "node:http2";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { type Http2Bench, startHttp2Bench } from "../testing/http2-bench.ts";
import type { ExchangeHandler } from "./exchange.ts";

const MB = 2 ** 20;

/** Responds with the length and digest of the body; `/big` responds with 50 MB, written in chunks of many sizes. */
const handler: ExchangeHandler = async (exchange) => {
  if (exchange.url === "/big") {
    const stream = exchange.stream(200, {});
    for (const piece of pieces()) if (!stream.write(piece)) await stream.drained();
    return stream.end();
  }
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of exchange.bodyStream()) {
    hash.update(chunk);
    size += chunk.length;
  }
  exchange.respond(200, { "x-method": exchange.method }, `${exchange.url} ${size} ${hash.digest("hex")}`);
};

const source = Buffer.from(Array.from({ length: 1_000_003 }, (_, at) => (at * 7 + (at >> 9)) & 0xff));

function* pieces(): Generator<Buffer> {
  for (let at = 0, sent = 0; sent < 50 * MB; at = (at + 77_777) % 900_000) {
    const piece = source.subarray(at, Math.min(at + 1 + ((at * 13) % 99_991), at + 50 * MB - sent));
    sent += piece.length;
    yield piece;
  }
}

function sessionOf(t: TestContext, { server, ca }: Http2Bench, settings: Settings = {}): ClientHttp2Session {
  const session = connect(`https://localhost:${server.port}`, {
    ca,
    settings,
    lookup: (_name, _options, done) => done(null, [{ address: "127.0.0.1", family: 4 }] as never),
  });
  session.on("error", () => {});
  t.after(() => session.destroy());
  return session;
}

test("node: a thousand requests at once over one connection with a limit of 250 streams", async (t) => {
  let most = 0;
  const bench = await startHttp2Bench(t, async (exchange) => {
    most = Math.max(most, bench.server.active);
    await new Promise(setImmediate);
    exchange.respond(200, {}, exchange.url);
  });
  const session = sessionOf(t, bench);
  await once(session, "remoteSettings");
  const bodies = await Promise.all(
    Array.from({ length: 1000 }, async (_, i) => {
      const stream = session.request({ ":path": `/${i}` });
      let body = "";
      for await (const chunk of stream.setEncoding("utf8")) body += chunk;
      return body;
    }),
  );
  assert.deepEqual(
    bodies,
    Array.from({ length: 1000 }, (_, i) => `/${i}`),
  );
  assert.ok(most <= 250, `${most} at a time`);
});

test("node: a download of 50 MB", async (t) => {
  const stream = sessionOf(t, await startHttp2Bench(t, handler)).request({ ":path": "/big" });
  const [want, got] = [createHash("sha256"), createHash("sha256")];
  for (const piece of pieces()) want.update(piece);
  for await (const chunk of stream) got.update(chunk);
  assert.equal(got.digest("hex"), want.digest("hex"));
});

test("node: an upload of 20 MB", async (t) => {
  const stream = sessionOf(t, await startHttp2Bench(t, handler)).request({ ":method": "PUT", ":path": "/up" });
  const body = Buffer.concat(Array(20).fill(source));
  stream.end(body);
  let answer = "";
  for await (const chunk of stream.setEncoding("utf8")) answer += chunk;
  assert.equal(answer, `/up ${body.length} ${createHash("sha256").update(body).digest("hex")}`);
});

for (const headerTableSize of [0, 100, 65_536]) {
  test(`node: a header table of ${headerTableSize} bytes that is reduced during the connection`, async (t) => {
    const bench = await startHttp2Bench(t, (exchange) => exchange.respond(200, { "x-url": exchange.url }, "ok"));
    const session = sessionOf(t, bench, { headerTableSize });
    await once(session, "connect");
    for (const path of ["/a", "/b", "/c"]) {
      const stream = session.request({ ":path": path, "x-long": "y".repeat(100) });
      const [headers] = await once(stream, "response");
      assert.deepEqual([headers[":status"], headers["x-url"]], [200, path]);
      stream.resume();
      await once(stream, "close");
      await new Promise<void>((resolve) => session.settings({ headerTableSize: headerTableSize / 2 }, () => resolve()));
    }
  });
}

const hasCurl = (process.env["PATH"] ?? "").split(delimiter).some((folder) => {
  try {
    accessSync(join(folder, "curl"));
    return true;
  } catch {
    return false;
  }
});

test("curl: GET, HEAD, an upload with and without a length, a download", { skip: !hasCurl && "there is no curl" }, async (t) => {
  const { server, ca } = await startHttp2Bench(t, handler);
  const folder = mkdtempSync(join(tmpdir(), "cox-curl-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "ca.crt"), ca);
  writeFileSync(join(folder, "body"), source);
  const curl = async (path: string, ...more: string[]): Promise<string> => {
    const shown = [
      "--http2",
      "--silent",
      "--show-error",
      "--max-time",
      "10",
      "--cacert",
      join(folder, "ca.crt"),
      "--noproxy",
      "*",
    ];
    const url = `https://127.0.0.1:${server.port}${path}`;
    const { stdout } = await promisify(execFile)("curl", [...shown, ...more, url], { cwd: folder });
    return stdout;
  };
  const digest = createHash("sha256").update(source).digest("hex");
  const written = ["--output", "answer", "--write-out", "%{http_version} %{response_code} %{size_download}"];
  assert.match(await curl("/get"), /^\/get 0 /);
  assert.match(await curl("/head", "--head"), /^HTTP\/2 200 /);
  assert.equal(await curl("/put", "--upload-file", "body"), `/put ${source.length} ${digest}`);
  assert.equal(
    await curl("/post", "--data-binary", "@body", "--header", "expect: 100-continue"),
    `/post ${source.length} ${digest}`,
  );
  assert.equal(await curl("/big", ...written), `2 200 ${50 * MB}`);
});
