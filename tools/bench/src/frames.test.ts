import assert from "node:assert/strict";
import { once } from "node:events";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { encodeFrame, type Frame, newFrameReader } from "./frames.ts";
import { openWatchConnection } from "./watch-client.ts";

test("frames are found whole and data in pieces, however the bytes are cut", () => {
  const bytes = Buffer.concat([
    encodeFrame(0, 1, 3, Buffer.from("hello")),
    encodeFrame(4, 0, 0, Buffer.alloc(0)),
    encodeFrame(6, 0, 0, Buffer.from("12345678")),
    encodeFrame(0, 0, 5, Buffer.alloc(700, 7)),
  ]);
  for (const step of [1, 7, bytes.length]) {
    const frames: [number, number, string][] = [];
    const data: Record<number, number> = {};
    const read = newFrameReader(
      ({ type, stream, payload }: Frame) => frames.push([type, stream, payload.toString()]),
      (stream, piece) => {
        data[stream] = (data[stream] ?? 0) + piece.length;
      },
    );
    for (let at = 0; at < bytes.length; at += step) read(bytes.subarray(at, at + step));
    assert.deepEqual(frames, [
      [4, 0, ""],
      [6, 0, "12345678"],
    ]);
    assert.deepEqual(data, { 3: 5, 5: 700 });
  }
});

test("each watch of a connection is told of its own lines, and of a refusal", async (t) => {
  const ca = await newCa({ commonName: "test-ca" });
  const { certPem, keyPem } = await newCertificate({
    commonName: "test",
    ips: ["127.0.0.1"],
    dnsNames: [],
    usages: ["server"],
    ca,
  });
  const server = createSecureServer({ cert: certPem, key: keyPem });
  const paths: unknown[] = [];
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    paths.push([headers[":path"], headers.authorization]);
    if (headers[":path"] === "/no") return stream.respond({ ":status": 403 }, { endStream: true });
    stream.respond({ ":status": 200 });
    stream.write("a\n".repeat(Number(headers[":path"]?.slice(1))));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = await openWatchConnection(url, "x".repeat(300), Buffer.from(ca.certPem));
  t.after(() => {
    connection.close();
    server.close();
  });
  const lines = [0, 0];
  const all = Promise.withResolvers<void>();
  const count = (watch: number) => () => {
    lines[watch] = (lines[watch] ?? 0) + 1;
    if (lines[0] === 3 && lines[1] === 20_000) all.resolve();
  };
  await Promise.all([connection.watch("/3", count(0)), connection.watch("/20000", count(1))]);
  await all.promise;
  await assert.rejects(
    connection.watch("/no", () => {}),
    /not answered with 200/,
  );
  assert.deepEqual(paths[0], ["/3", `Bearer ${"x".repeat(300)}`]);
});
