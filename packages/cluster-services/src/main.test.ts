/** The program itself: what it prints and refuses without a cluster. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";

const main = join(import.meta.dirname, "main.ts");

function run(...args: string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["-C", "cox-source", main, ...args], { encoding: "utf8" });
  return { code: status, out: stdout, err: stderr };
}

test("prints the rights of the chosen parts and of their lease", () => {
  const { code, out } = run("--print-rights", "--disable=*", "--enable=metrics-api", "--leader-elect-resource-name=mine");
  assert.equal(code, 0);
  assert.match(out, /^apiVersion: v1\nitems:/);
  assert.match(out, /name: coxswain-services:metrics-api\n/);
  assert.match(out, /resourceNames:\n\s+- mine\n/);
  assert.doesNotMatch(out, /coxswain-services:dns/);
});

for (const { flags, message } of [
  { flags: ["--enable=proxy"], message: /^Error: "proxy" is not in the list of known parts: / },
  { flags: ["--leader-elect-resource-lock=files"], message: /^Error: --leader-elect-resource-lock: / },
  { flags: ["--leader-elect-lease-duration=1s"], message: /^Error: --leader-elect: / },
  { flags: ["--kubeconfig=/none"], message: /^Error: unable to load the client configuration: / },
])
  test(`${flags.join(" ")} is refused in one line`, () => {
    const { code, out, err } = run("--print-rights=false", ...flags);
    assert.deepEqual([code, out, err.trimEnd().split("\n").length], [1, "", 1], err);
    assert.match(err, message);
  });

test("without leader election its other flags are not looked at", () => {
  assert.equal(run("--print-rights", "--leader-elect=false", "--leader-elect-lease-duration=1s").code, 0);
});

/** A daemon whose API server nobody is. Its prefix keeps it from the rules of others on this machine. */
async function startDaemon(t: TestContext, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "cox-services-"));
  const kubeconfig = join(folder, "kubeconfig");
  const server = `http://127.0.0.1:${await freePort()}`;
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      ...{ apiVersion: "v1", kind: "Config", "current-context": "c", users: [{ name: "u", user: {} }] },
      clusters: [{ name: "c", cluster: { server } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    }),
  );
  const port = await freePort();
  const own = [`--kubeconfig=${kubeconfig}`, `--secure-port=${port}`, "--bind-address=127.0.0.1", `--cert-dir=${folder}`];
  const apart = ["--iptables-chain-prefix=COXMAIN-", `--cni-conf-dir=${folder}`, "--disable=*"];
  const child = spawn(process.execPath, ["-C", "cox-source", main, ...own, ...apart, ...args], { stdio: "ignore" });
  const exited = once(child, "exit") as Promise<[code: number | null, signal: string | null]>;
  t.after(async () => {
    child.kill("SIGKILL");
    await exited;
    rmSync(folder, { recursive: true });
  });
  const ask = async (path: string): Promise<string> => {
    const request = get({
      host: "127.0.0.1",
      port,
      path,
      rejectUnauthorized: false,
      agent: false,
      signal: AbortSignal.timeout(5_000),
    });
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
    return text(response);
  };
  await waitFor(() => ask("/healthz"), { retry: () => child.exitCode === null, what: "the daemon to serve" });
  return { ask, child, exited };
}

for (const { parts, want } of [
  { parts: ["--enable=metrics-api"], want: ["leaderElection", "metrics-api"] },
  { parts: ["--enable=metrics-api", "--leader-elect=false"], want: ["ping", "metrics-api"] },
  { parts: ["--enable=dns"], want: ["ping", "dns"] },
])
  test(`with ${parts.join(" ")} the daemon's health page names ${want.join(" and ")}; it ends when it is told to`, async (t) => {
    const { ask, child, exited } = await startDaemon(t, ...parts);
    const page = await ask("/healthz?verbose");
    const names = [...page.matchAll(/^\[.\](\S+) /gm)].map(([, name]) => name);
    assert.deepEqual(names, want, page);
    child.kill("SIGTERM");
    assert.deepEqual(await exited, [0, null]);
  });
