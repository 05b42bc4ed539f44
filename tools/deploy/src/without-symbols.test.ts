import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withoutSymbols } from "./without-symbols.ts";

test("Node without its symbols runs, with TLS, a worker and compressed text", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-symbols-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = readFileSync(process.execPath);
  const kept = withoutSymbols(program);
  const file = join(folder, "node");
  writeFileSync(file, kept, { mode: 0o755 });
  const code = `
    const { createHash } = require("node:crypto");
    const { createSecureContext } = require("node:tls");
    const { gunzipSync, gzipSync } = require("node:zlib");
    const { Worker } = require("node:worker_threads");
    createSecureContext();
    const text = gunzipSync(gzipSync(createHash("sha256").update("").digest("hex"))).toString();
    new Worker("require('node:worker_threads').parentPort.postMessage('" + text.slice(0, 8) + "')", { eval: true })
      .on("message", (message) => console.log(message, new Intl.DateTimeFormat("de").format(0)));`;
  assert.equal(execFileSync(file, ["-e", code], { env: { TZ: "UTC" }, encoding: "utf8" }), "e3b0c442 1.1.1970\n");
  // Nothing is left to remove, and the rest is unchanged.
  assert.deepEqual(withoutSymbols(kept).length, kept.length);
  assert.ok(kept.subarray(64).equals(program.subarray(64, kept.length)));
});

test("a file that is not an ELF program is refused", () => {
  for (const bytes of ["", "#!/bin/sh\n", "\x7fELF\x01\x01"])
    assert.throws(() => withoutSymbols(Buffer.from(bytes, "latin1")), /not a 64-bit little-endian ELF program/);
});
