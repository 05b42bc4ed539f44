/** The program itself: what it prints and refuses without a cluster. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { listening } from "@coxswain/apimachinery/testing/listening";
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

test("--apply-rights writes the rights of the chosen parts and names them; a refusal is one line", async (t) => {
  const created: string[] = [];
  let isRefused = false;
  const server = createServer((request, response) => {
    void json(request).then((sent) => {
      const { kind, metadata } = sent as { kind: string; metadata: { name: string } };
      created.push(`${request.method} ${kind} ${metadata.name}`);
      const refusal = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Forbidden", code: 403, message: "not you" };
      response.writeHead(isRefused ? 403 : 201, { "content-type": "application/json" });
      response.end(JSON.stringify(isRefused ? refusal : sent));
    });
  });
  const host = `http://127.0.0.1:${await listening(t, server)}`;
  const apply = async (): Promise<unknown[]> => {
    const flags = ["--apply-rights", `--master=${host}`, "--disable=*", "--enable=dns"];
    const child = spawn(process.execPath, ["-C", "cox-source", main, ...flags], { stdio: ["ignore", "pipe", "pipe"] });
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    return [code, out, err];
  };
  const [code, out, err] = await apply();
  assert.deepEqual([code, err], [0, ""]);
  const names = String(out).trimEnd().split("\n");
  assert.ok(names.includes("clusterrole.rbac.authorization.k8s.io/coxswain-services:dns applied"), String(out));
  assert.ok(created.includes("POST ClusterRole coxswain-services:dns"), created.join());
  assert.equal(names.length, created.length);
  isRefused = true;
  assert.deepEqual(await apply(), [1, "", `Error: cannot write the rights of coxswain-services to ${host}: not you\n`]);
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
