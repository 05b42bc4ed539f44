/** The health check of containers and the two options of main.ts: exit codes, and what is printed. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { nodeFlags } from "@coxswain/apimachinery/testing/node-flags";
import { testPair } from "@coxswain/apimachinery/testing/tls";

function run(program: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) =>
    execFile(process.execPath, [...nodeFlags, join(import.meta.dirname, program), ...args], (err, stdout, stderr) =>
      resolve({ code: Number(err?.code ?? 0), stdout, stderr }),
    ),
  );
}

async function portOf(t: TestContext, server: Server & { closeAllConnections(): void }): Promise<number> {
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port; // cast: it listens on a port
}

test("a check succeeds only with the status 200, and says what it got otherwise", async (t) => {
  const answer: RequestListener = ({ url = "" }, response) => void response.writeHead(Number(url.slice(1))).end();
  const url = `http://127.0.0.1:${await portOf(t, createServer(answer))}`;
  assert.deepEqual(await run("check.ts", `${url}/200`), { code: 0, stdout: "", stderr: "" });
  for (const status of ["204", "301", "500"])
    assert.deepEqual(await run("check.ts", `${url}/${status}`), { code: 1, stdout: "", stderr: `${url}/${status}: ${status}\n` });
});

test("a check trusts any certificate, or that of the given authorities only", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-check-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [pair, other] = [await testPair(), await testPair("other")];
  writeFileSync(join(folder, "ca.crt"), pair.ca);
  writeFileSync(join(folder, "other.crt"), other.ca);
  const url = `https://127.0.0.1:${await portOf(
    t,
    createSecureServer(pair, (_, response) => void response.end()),
  )}/readyz`;
  assert.equal((await run("check.ts", url)).code, 0);
  assert.equal((await run("check.ts", url, join(folder, "ca.crt"))).code, 0);
  const { code, stderr } = await run("check.ts", url, join(folder, "other.crt"));
  assert.equal(code, 1);
  assert.match(stderr, /^https:\/\/\S+\/readyz: .*certificate.*\n$/);
});

test("a check of what does not answer, is no server or no URL, fails on one line", async (t) => {
  const silent = await portOf(
    t,
    createServer(() => {}),
  );
  for (const [url, want] of [
    [`http://127.0.0.1:${silent}/`, /: no answer\n$/],
    ["http://127.0.0.1:1/", /: .*ECONNREFUSED.*\n$/],
    ["nonsense", /^nonsense: Invalid URL\n$/],
  ] as const) {
    const { code, stderr } = await run("check.ts", url);
    assert.equal(code, 1);
    assert.match(stderr, want);
    assert.equal(stderr.split("\n").length, 2);
  }
});

test("an unknown option of a build is refused with one line and exit code 2", async () => {
  const { code, stdout, stderr } = await run("main.ts", "--relase");
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /^cox: Unknown option '--relase'; see \.\/cox build --help\n$/);
});

test("a build of nothing writes and prints nothing", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-check-"));
  t.after(() => rmSync(folder, { recursive: true }));
  assert.deepEqual(await run("main.ts", "--out", join(folder, "out")), { code: 0, stdout: "", stderr: "" });
});
