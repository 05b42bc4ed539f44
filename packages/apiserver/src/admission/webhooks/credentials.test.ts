/** The kubeconfig user that is selected for a webhook, and its credentials. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { webhookCredentials } from "./credentials.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-webhook-credentials-"));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
function credentialsOf(
  users: Record<string, object>,
  more: object = {},
  proxy: { current: object | undefined } = { current: undefined },
) {
  const kubeConfigFile = join(folder, `config-${files++}`);
  const named = Object.entries(users).map(([name, user]) => ({ name, user }));
  writeFileSync(kubeConfigFile, JSON.stringify({ users: named, ...more }));
  return webhookCredentials({ kubeConfigFile }, proxy as Parameters<typeof webhookCredentials>[1]);
}
const token = (name: string) => ({ token: name });
const bearer = (name: string) => ({ authorization: `Bearer ${name}` });

const withPorts = ["hook.web.svc:8443", "*.web.svc:8443", "*.svc:8443", "hook.web.svc:443", "*.svc:443"];
const patterns = [...withPorts, "hook.web.svc", "*.web.svc", "*.svc", "*"];
for (const { target, order } of [
  { target: "hook.web.svc:8443", order: ["hook.web.svc:8443", "*.web.svc:8443", "*.svc:8443", "*"] },
  { target: "hook.web.svc:443", order: ["hook.web.svc:443", "*.svc:443", "hook.web.svc", "*.web.svc", "*.svc", "*"] },
  { target: "example.com:443", order: ["*"] },
]) {
  test(`the user for ${target} is the most specific one that matches`, () => {
    const left = new Set(patterns);
    for (const want of order) {
      const find = credentialsOf(Object.fromEntries([...left].map((name) => [name, token(name)])));
      assert.deepEqual(find(target).headers, bearer(want));
      left.delete(want);
    }
    const find = credentialsOf(Object.fromEntries([...left].map((name) => [name, token(name)])));
    assert.deepEqual(find(target), { headers: {} });
  });
}

test("a webhook that matches no user gets that of the current context, else the proxy's certificate of the moment", () => {
  const contexts = { contexts: [{ name: "c", context: { user: "own" } }], "current-context": "c" };
  assert.deepEqual(credentialsOf({ own: token("own") }, contexts)("a.com:443").headers, bearer("own"));
  const both = credentialsOf({ own: token("own"), "*.com": token("matching") }, contexts);
  assert.deepEqual([both("a.com:443").headers, both("a.org:443").headers], [bearer("matching"), bearer("own")]);
  const proxy: { current: object | undefined } = { current: { cert: "1", key: "1" } };
  for (const find of [credentialsOf({ other: token("t") }, {}, proxy), webhookCredentials(undefined, proxy as never)]) {
    proxy.current = { cert: "1", key: "1" };
    assert.deepEqual(find("a.com:443"), { headers: {}, certificate: { cert: "1", key: "1" } });
    proxy.current = { cert: "2", key: "2" };
    assert.deepEqual(find("a.com:443").certificate, { cert: "2", key: "2" });
  }
});

test("files are read for each request, and a password is used with its user", () => {
  const [tokenFile, cert, key] = ["token", "cert", "key"].map((name) => join(folder, name)) as [string, string, string];
  for (const path of [tokenFile, cert, key]) writeFileSync(path, "first\n");
  const find = credentialsOf({
    "*": { tokenFile, "client-certificate": cert, "client-key": key },
    "bare.com": { username: "u" },
    "basic.com": { username: "u", password: "p", as: "jane", "as-groups": ["a", "b"] },
  });
  assert.deepEqual(find("a.com:443"), { headers: bearer("first"), certificate: { cert: "first\n", key: "first\n" } });
  for (const path of [tokenFile, cert, key]) writeFileSync(path, "second\n");
  assert.deepEqual(find("a.com:443"), { headers: bearer("second"), certificate: { cert: "second\n", key: "second\n" } });
  assert.deepEqual(find("bare.com:443").headers, { authorization: `Basic ${Buffer.from("u:").toString("base64")}` });
  assert.deepEqual(find("basic.com:443").headers, {
    authorization: `Basic ${Buffer.from("u:p").toString("base64")}`,
    "impersonate-user": "jane",
    "impersonate-group": ["a", "b"],
  });
});

test("the paths of a kubeconfig are relative to it", () => {
  for (const name of ["own-token", "own-cert", "own-key"]) writeFileSync(join(folder, name), name);
  const find = credentialsOf({ "*": { tokenFile: "own-token", "client-certificate": "own-cert", "client-key": "./own-key" } });
  const certificate = { cert: "own-cert", key: "own-key" };
  assert.deepEqual(find("a.com:443"), { headers: bearer("own-token"), certificate });
});

test("a relative path and a plugin that would be executed are refused", () => {
  assert.throws(() => webhookCredentials({ kubeConfigFile: "config" }, { current: undefined }), /must be an absolute file path/);
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "true", interactiveMode: "Never" };
  assert.throws(() => credentialsOf({ a: token("a"), b: { exec } }), /exec plugins are not supported/);
});
