import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import type { ClientConfig } from "./config.ts";
import { newCredentials } from "./credentials.ts";

const host = "https://h:6443";
const headersOf = (config: Partial<ClientConfig>) => newCredentials({ host, ...config }, newFakeClock(), () => {}).headers();
const basic = `Basic ${Buffer.from("nick:p:w").toString("base64")}`;

for (const { name, config, want } of [
  { name: "a name and a password", config: { username: "nick", password: "p:w" }, want: { authorization: basic } },
  {
    name: "a name without a password",
    config: { username: "nick" },
    want: { authorization: `Basic ${Buffer.from("nick:").toString("base64")}` },
  },
  { name: "a token, also beside a name", config: { username: "nick", token: "t" }, want: { authorization: "Bearer t" } },
  { name: "an empty token", config: { token: "" }, want: {} },
  { name: "an empty name", config: { username: "", password: "p" }, want: {} },
  {
    name: "an impersonated user with uid, groups and extra",
    config: { impersonate: { user: "bob", uid: "u-1", groups: ["a", "b"], extra: { "Scope/One": ["x", "y"] } } },
    want: {
      "impersonate-user": "bob",
      "impersonate-uid": "u-1",
      "impersonate-group": ["a", "b"],
      "impersonate-extra-scope%2fone": ["x", "y"],
    },
  },
  {
    name: "an impersonated user without groups",
    config: { impersonate: { user: "bob", groups: [] } },
    want: { "impersonate-user": "bob" },
  },
]) {
  test(`sends ${name}`, async () => assert.deepEqual(await headersOf(config), want));
}

test("a missing token file is an error, unless a token is given beside it", async () => {
  await assert.rejects(
    async () => await headersOf({ tokenFile: "/nowhere/token" }),
    /^Error: cannot read the token file: ENOENT/,
  );
  assert.deepEqual(await headersOf({ tokenFile: "/nowhere/token", token: "t" }), { authorization: "Bearer t" });
});

test("only credentials that may change are worth another try after a refusal", () => {
  const rejected = (config: Partial<ClientConfig>) => newCredentials({ host, ...config }, newFakeClock(), () => {}).rejected({});
  const exec = { apiVersion: "v1", command: "x" };
  assert.deepEqual(
    [{ token: "t" }, { username: "n" }, { tokenFile: "/f" }, { exec }, { tokenSource: async () => "t" }].map(rejected),
    [false, false, true, true, true],
  );
});

test("a token file is read again after a minute, and at once after its token was refused", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cox-token-"));
  t.after(() => rm(directory, { recursive: true }));
  const tokenFile = join(directory, "token");
  const clock = newFakeClock();
  const credentials = newCredentials({ host, tokenFile }, clock, () => {});
  const sent = async (): Promise<unknown> => (await credentials.headers())["authorization"];
  await writeFile(tokenFile, "one\n");
  assert.equal(await sent(), "Bearer one");
  await writeFile(tokenFile, "two");
  await clock.advance(59_999);
  assert.equal(await sent(), "Bearer one");
  await clock.advance(1);
  assert.equal(await sent(), "Bearer two");
  await writeFile(tokenFile, "three");
  assert.equal(await sent(), "Bearer two");
  assert.equal(credentials.rejected({ authorization: "Bearer two" }), true);
  assert.equal(await sent(), "Bearer three");
  for (const unreadable of [writeFile(tokenFile, " \n"), rm(tokenFile)]) {
    await unreadable;
    credentials.rejected({ authorization: "Bearer three" });
    assert.equal(await sent(), "Bearer three", "the last known one");
  }
});

async function aPlugin(t: TestContext, script: string): Promise<{ directory: string; command: string }> {
  const directory = await mkdtemp(join(tmpdir(), "cox-plugin-"));
  t.after(() => rm(directory, { recursive: true }));
  const command = join(directory, "plugin");
  await writeFile(command, `#!/bin/sh\n${script.replaceAll("DIR", directory)}\n`);
  await chmod(command, 0o755);
  return { directory, command };
}
const apiVersion = "client.authentication.k8s.io/v1";

for (const { name, config, cluster } of [
  { name: "nothing of the cluster unless asked to", config: {}, cluster: undefined },
  {
    name: "the cluster with its name and authority",
    config: { serverName: "kubernetes", ca: "CA" },
    cluster: { server: host, "tls-server-name": "kubernetes", "certificate-authority-data": "Q0E=" },
  },
  {
    name: "that the cluster is not verified",
    config: { insecure: true },
    cluster: { server: host, "insecure-skip-tls-verify": true },
  },
]) {
  test(`a credential plugin learns ${name}`, async (t) => {
    const answer = JSON.stringify({ kind: "ExecCredential", apiVersion, status: { token: "t" } });
    const { directory, command } = await aPlugin(
      t,
      `echo "$KUBERNETES_EXEC_INFO" > DIR/info; echo "$1" > DIR/args; echo '${answer}'`,
    );
    const exec = { apiVersion, command, args: ["get"], provideClusterInfo: cluster !== undefined };
    assert.deepEqual(await headersOf({ ...config, exec }), { authorization: "Bearer t" });
    assert.deepEqual(JSON.parse(await readFile(join(directory, "info"), "utf8")), {
      apiVersion,
      kind: "ExecCredential",
      spec: { ...(cluster && { cluster }), interactive: false },
    });
    assert.equal(await readFile(join(directory, "args"), "utf8"), "get\n");
  });
}

test("a plugin that fails is an error with its hint, for all who wait; the next request runs it again", async (t) => {
  const answer = JSON.stringify({ kind: "ExecCredential", apiVersion, status: { token: "t" } });
  const { directory, command } = await aPlugin(t, `echo x >> DIR/runs; test -e DIR/good || exit 3; echo '${answer}'`);
  const exec = { apiVersion, command, installHint: "install it" };
  const credentials = newCredentials({ host, exec }, newFakeClock(), () => {});
  const both = await Promise.allSettled([credentials.headers(), credentials.headers()]);
  for (const one of both) {
    assert.equal(
      one.status === "rejected" && one.reason.message,
      `getting credentials: exec: executable ${command} failed\n\ninstall it`,
    );
    assert.equal(one.status === "rejected" && one.reason.cause?.code, 3);
  }
  assert.equal(await readFile(join(directory, "runs"), "utf8"), "x\n", "they share one run");
  await writeFile(join(directory, "good"), "");
  assert.deepEqual(await credentials.headers(), { authorization: "Bearer t" });
});

test("a plugin's credential is used until the moment of its expiration", async (t) => {
  const clock = newFakeClock();
  const expirationTimestamp = new Date(clock.now() + 60_000).toISOString();
  const answer = JSON.stringify({ kind: "ExecCredential", apiVersion, status: { token: "t", expirationTimestamp } });
  const { directory, command } = await aPlugin(t, `echo x >> DIR/runs; echo '${answer}'`);
  const credentials = newCredentials({ host, exec: { apiVersion, command } }, clock, () => {});
  const runs = async (): Promise<number> => {
    await credentials.headers();
    return (await readFile(join(directory, "runs"), "utf8")).length / 2;
  };
  assert.equal(await runs(), 1);
  await clock.advance(59_999);
  assert.equal(await runs(), 1);
  await clock.advance(1);
  assert.equal(await runs(), 2);
});
