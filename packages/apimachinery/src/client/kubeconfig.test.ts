import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newCredentials } from "./credentials.ts";
import { configFromFlags, inClusterConfig } from "./in-cluster.ts";
import { loadKubeconfig, parseKubeconfig, withCurrentPem } from "./kubeconfig.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

const kubeconfig = (cluster: string, user: string, current = "main"): string => `
apiVersion: v1
kind: Config
current-context: ${current}
clusters:
- name: c
  cluster: ${cluster}
contexts:
- name: main
  context: {cluster: c, user: u}
- name: lost
  context: {cluster: nowhere, user: u}
- name: nobody
  context: {cluster: c, user: nobody}
users:
- name: u
  user: ${user}
`;

for (const { name, text, want } of [
  {
    name: "certificates and keys in the file",
    text: kubeconfig(
      `{server: "https://h:6443", certificate-authority-data: ${base64("CA")}}`,
      `{client-certificate-data: ${base64("CERT")}, client-key-data: ${base64("KEY")}}`,
    ),
    want: { host: "https://h:6443", ca: "CA", cert: "CERT", key: "KEY" },
  },
  {
    name: "paths relative to the file",
    text: kubeconfig(
      `{server: "https://h", certificate-authority: ca.crt}`,
      `{client-certificate: pki/c.crt, client-key: /abs/c.key}`,
    ),
    want: { host: "https://h", caFile: "/etc/kubernetes/ca.crt", certFile: "/etc/kubernetes/pki/c.crt", keyFile: "/abs/c.key" },
  },
  {
    name: "tokens and impersonation",
    text: kubeconfig(`{server: "http://h:8080"}`, `{token: t, tokenFile: tok, as: bob, as-groups: [x]}`),
    want: {
      host: "http://h:8080",
      token: "t",
      tokenFile: "/etc/kubernetes/tok",
      impersonate: { user: "bob", groups: ["x"] },
    },
  },
  {
    name: "basic credentials",
    text: kubeconfig(`{server: "http://h:8080"}`, `{username: nick, password: p}`),
    want: { host: "http://h:8080", username: "nick", password: "p" },
  },
  {
    name: "a server that is not checked, or checked under another name",
    text: kubeconfig(`{server: "https://h", insecure-skip-tls-verify: true, tls-server-name: other}`, `{}`),
    want: { host: "https://h", insecure: true, serverName: "other" },
  },
  {
    name: "a credential plugin",
    text: kubeconfig(
      `{server: "https://h"}`,
      `{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./get-token, args: [a], env: null}}`,
    ),
    want: {
      host: "https://h",
      exec: { apiVersion: "client.authentication.k8s.io/v1beta1", command: "/etc/kubernetes/get-token", args: ["a"] },
    },
  },
]) {
  test(`reads ${name}`, () => assert.deepEqual(parseKubeconfig(text, { directory: "/etc/kubernetes" }), want));
}

test("--master overrides the server of the kubeconfig", () => {
  const text = kubeconfig(`{server: "https://h"}`, `{token: t}`);
  assert.deepEqual(parseKubeconfig(text, { master: "https://other:1" }), { host: "https://other:1", token: "t" });
  assert.deepEqual(parseKubeconfig(text, { master: "other:1" }), { host: "http://other:1", token: "t" });
});

for (const { name, user } of [
  { name: "nothing", user: "" },
  { name: "null", user: ", user: null" },
  { name: "an empty map", user: ", user: {}" },
]) {
  test(`a user of ${name} has no credentials`, () => {
    const [cluster, context] = [`{name: c, cluster: {server: "https://h"}}`, "{name: x, context: {cluster: c, user: u}}"];
    const text = `{clusters: [${cluster}], contexts: [${context}], users: [{name: u${user}}], current-context: x}`;
    assert.deepEqual(parseKubeconfig(text), { host: "https://h" });
  });
}

for (const { name, text, message } of [
  { name: "no current context", text: kubeconfig("{}", "{}", '""'), message: /no current-context is set/ },
  { name: "a context that does not exist", text: kubeconfig("{}", "{}", "absent"), message: /context "absent" does not exist/ },
  { name: "a cluster that does not exist", text: kubeconfig("{}", "{}", "lost"), message: /cluster "nowhere" does not exist/ },
  {
    name: "a user that does not exist",
    text: kubeconfig(`{server: "https://h"}`, "{}", "nobody"),
    message: /user "nobody" does not exist/,
  },
  {
    name: "a context without a cluster",
    text: "contexts: [{name: x, context: {}}]\ncurrent-context: x",
    message: /^Error: cluster "" does not exist$/,
  },
  { name: "no server", text: kubeconfig("{}", "{}"), message: /has no server defined/ },
  { name: "contexts that are no list", text: "contexts: t", message: /not a kubeconfig: contexts is not a list/ },
  { name: "a document that is no map", text: "[]", message: /not a kubeconfig: the document is not a map/ },
  { name: "a name that is no text", text: "users: [{name: 1}]", message: /not a kubeconfig: users\[0\]\.name is not a string/ },
  { name: "an empty entry", text: "contexts: [null]\ncurrent-context: a", message: /context "a" does not exist/ },
]) {
  test(`refuses ${name}`, () => assert.throws(() => parseKubeconfig(text), message));
}

const api = "apiVersion: client.authentication.k8s.io/v1";
for (const [name, cluster, user, message] of [
  [
    "authorities twice",
    "certificate-authority: ca, certificate-authority-data: eA==",
    "",
    /certificate-authority are both specified for c\./,
  ],
  [
    "authorities of a server that is not checked",
    "insecure-skip-tls-verify: true, certificate-authority: ca",
    "",
    /^Error: specifying a root certificates file with the insecure flag is not allowed$/,
  ],
  [
    "a certificate twice",
    "",
    "client-certificate: c, client-certificate-data: eA==",
    /client-cert are both specified for u\. client/,
  ],
  [
    "a key twice",
    "",
    "client-certificate: c, client-key: k, client-key-data: eA==",
    /client-key are both specified for u; client/,
  ],
  [
    "a key twice, of a certificate in the file itself",
    "",
    "client-certificate-data: eA==, client-key: k, client-key-data: eA==",
    /client-key are both specified for u; client/,
  ],
  [
    "a certificate without a key",
    "",
    "client-certificate: c",
    /: client-key-data or client-key must be specified for u to use the clientCert authentication method\.$/,
  ],
  [
    "a token and a password",
    "",
    "token: t, password: p",
    /: more than one authentication method found for u; found \[token basicAuth\], only one is allowed$/,
  ],
  ["groups without a user", "", "as-groups: [x]", /: requesting uid, groups or user-extra for u without impersonating a user$/],
  ["a UID without a user", "", "as-uid: x", /: requesting uid, groups or user-extra for u without impersonating a user$/],
  ["extra without a user", "", "as-user-extra: {x: [v]}", /: requesting uid, groups or user-extra for u without impersonating/],
  ["a plugin without a command", "", "exec: {}", /: command must be specified for u to use exec authentication plugin$/],
  ["a plugin without a version", "", "exec: {command: x}", /: apiVersion must be specified for u to use exec/],
  [
    "a plugin whose variable has no name",
    "",
    `exec: {command: x, ${api}, env: [{name: A, value: v}, {value: v}]}`,
    /: env variable name must be spec/,
  ],
  ["a plugin of v1 that does not say whether it asks users", "", `exec: {command: x, ${api}}`, /: interactiveMode must be spec/],
  [
    "another way of asking",
    "",
    `exec: {command: x, ${api}, interactiveMode: Never2}`,
    /: invalid interactiveMode for u: "Never2"$/,
  ],
  ["a plugin that is no map", "", "exec: aws", /: users\[0\]\.user\.exec is not a map$/],
  ["a plugin whose arguments are a text", "", `exec: {command: x, ${api}, args: get-token}`, /user\.exec\.args is not a list$/],
  ["a plugin whose variables are a map", "", `exec: {command: x, ${api}, env: {A: b}}`, /user\.exec\.env is not a list$/],
  ["a plugin of Go", "", "auth-provider: {name: gcp}", /: no Auth Provider found for name "gcp"$/],
  [
    "plugins of both kinds",
    "",
    `auth-provider: {name: gcp}, exec: {command: x, ${api}}`,
    /: authProvider cannot be provided in combination with an exec plugin for u$/,
  ],
  ["a token that is a number", "", "token: 17", /: users\[0\]\.user\.token is not a string$/],
  [
    "a flag that is a text",
    "insecure-skip-tls-verify: 'true'",
    "",
    /clusters\[0\]\.cluster\.insecure-skip-tls-verify is not a boolean$/,
  ],
  [
    "a plugin of another version",
    "",
    "exec: {command: x, apiVersion: client.authentication.k8s.io/v2}",
    /^Error: exec plugin: invalid apiVersion "client\.authentication\.k8s\.io\/v2"$/,
  ],
  ["groups that are a text", "", "as: ann, as-groups: admins", /user\.as-groups is not a list$/],
  [
    "a certificate that is no base64",
    "",
    "client-certificate-data: '-----', client-key: k",
    /^Error: illegal base64 data in client-c/,
  ],
  [
    "authorities that are cut off",
    "certificate-authority-data: eA",
    "",
    /^Error: illegal base64 data in certificate-authority-data$/,
  ],
  [
    "a plugin that has to ask users",
    "",
    `exec: {command: x, ${api}, interactiveMode: Always}`,
    /standard input is not a terminal$/,
  ],
] as const) {
  const text = kubeconfig(`{server: "https://h", ${cluster}}`, `{${user}}`);
  test(`refuses ${name}`, () => assert.throws(() => parseKubeconfig(text), message));
}

test("certificates are those of the current kubeconfig; its other changes and transient read errors change nothing", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "kubeconfig-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "config");
  const write = (server: string, ca: string, pair: string): Promise<void> => {
    const cluster = { server, "certificate-authority-data": base64(ca) };
    const user = { "client-certificate-data": base64(`cert${pair}`), "client-key-data": base64(`key${pair}`) };
    return writeFile(file, kubeconfig(JSON.stringify(cluster), JSON.stringify(user)));
  };
  await write("https://h", "ca1", "1");
  const config = await loadKubeconfig(file);
  await write("https://elsewhere", "ca1ca2", "2");
  assert.deepEqual(await withCurrentPem(config), { ...config, ca: "ca1ca2", cert: "cert2", key: "key2" });
  // A client with the file's address but a separate token has no certificate of the file.
  const { cert: _, key: __, ...withToken } = { ...config, token: "t" };
  assert.deepEqual(await withCurrentPem(withToken), { ...withToken, ca: "ca1ca2" });
  for (const text of ["{", "{}", ""]) {
    await writeFile(file, text);
    assert.deepEqual(await withCurrentPem(config), config, text);
  }
  await rm(file);
  assert.equal(await withCurrentPem(config), config);
});

test("a certificate embedded in the kubeconfig is read again from the same context, together with its key", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "kubeconfig-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "config");
  const pair = (of: string): object => ({
    "client-certificate-data": base64(`cert${of}`),
    "client-key-data": base64(`key${of}`),
  });
  const write = (one: object, two: object, cluster: object): Promise<void> => {
    const parts = {
      clusters: [{ name: "c", cluster: { server: "https://h", ...cluster } }],
      users: [
        { name: "one", user: one },
        { name: "two", user: two },
      ],
      contexts: ["one", "two"].map((name) => ({ name, context: { cluster: "c", user: name } })),
    };
    return writeFile(file, JSON.stringify({ "current-context": "one", ...parts }));
  };
  await write(pair("1"), pair("2"), {});
  const config = await loadKubeconfig(file, { context: "two" });
  await write(pair("1b"), pair("2b"), { "certificate-authority-data": base64("ca") });
  assert.deepEqual(await withCurrentPem(config), { ...config, cert: "cert2b", key: "key2b" });
  await write(pair("1b"), { "client-certificate-data": base64("cert2c"), "client-key": "/k" }, {});
  assert.deepEqual(await withCurrentPem(config), config);
});

test("certificates are read again from a file that names no server, for the server that was given apart from it", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "kubeconfig-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "config");
  const write = (ca: string): Promise<void> =>
    writeFile(file, kubeconfig(`{certificate-authority-data: ${base64(ca)}}`, "{token: t}"));
  await write("ca1");
  const config = await loadKubeconfig(file, { master: "https://m" });
  await write("ca2");
  assert.deepEqual(await withCurrentPem(config), { ...config, ca: "ca2" });
});

test("names the file that it cannot read", async () => {
  await assert.rejects(loadKubeconfig("/nowhere/admin.conf"), /cannot load kubeconfig \/nowhere\/admin\.conf/);
});

test("reads a token file again every minute, and keeps the last token when the file is missing", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cox-token-"));
  t.after(() => rm(directory, { recursive: true }));
  const tokenFile = join(directory, "token");
  await writeFile(tokenFile, "one\n");
  const clock = newFakeClock();
  const credentials = newCredentials({ host: "https://h", tokenFile }, clock, () => {});
  const shown = async () => (await credentials.headers())["authorization"];
  assert.equal(await shown(), "Bearer one");
  await writeFile(tokenFile, "two");
  assert.equal(await shown(), "Bearer one");
  await clock.advance(60_000);
  assert.equal(await shown(), "Bearer two");
  await writeFile(tokenFile, "\n");
  await clock.advance(60_000);
  assert.equal(await shown(), "Bearer two", "an empty file is one that is being written");
  await rm(tokenFile);
  await clock.advance(60_000);
  assert.equal(await shown(), "Bearer two");
  await writeFile(tokenFile, "three");
  assert.equal(await shown(), "Bearer three", "the file that was gone is not waited for another minute");
});

test("a credential plugin runs again after its credential expires or after a 401", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cox-exec-"));
  t.after(() => rm(directory, { recursive: true }));
  const clock = newFakeClock();
  const command = join(directory, "plugin");
  const expires = new Date(clock.now() + 600_000).toISOString().replace(".000", "");
  const script = `#!/bin/sh
echo x >> ${directory}/runs
n=$(wc -l < ${directory}/runs)
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$WORD-$n'","expirationTimestamp":"${expires}"}}'
`;
  await writeFile(command, script);
  await chmod(command, 0o755);
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command, env: [{ name: "WORD", value: "t" }] };
  const credentials = newCredentials({ host: "https://h", exec }, clock, () => {});
  const shown = async () => (await credentials.headers())["authorization"];
  assert.deepEqual(await Promise.all([shown(), shown()]), ["Bearer t-1", "Bearer t-1"]);
  assert.equal(await shown(), "Bearer t-1");
  assert.equal(credentials.rejected({}), true);
  assert.deepEqual([await shown(), await shown()], ["Bearer t-2", "Bearer t-2"]);
  await clock.advance(600_000);
  assert.equal(await shown(), "Bearer t-3");
});

test("a plugin's new certificate is reported once, also after a 401; until then the previous one is used", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cox-exec-"));
  t.after(() => rm(directory, { recursive: true }));
  const [command, answer] = [join(directory, "plugin"), join(directory, "answer")];
  await writeFile(command, `#!/bin/sh\nexec cat ${answer}\n`);
  await chmod(command, 0o755);
  const apiVersion = "client.authentication.k8s.io/v1";
  const give = (status: object | undefined, version = apiVersion) =>
    writeFile(answer, JSON.stringify({ kind: "ExecCredential", apiVersion: version, status }));
  const pair = (name: string) => ({ clientCertificateData: `cert ${name}`, clientKeyData: `key ${name}` });
  let notifications = 0;
  const credentials = newCredentials({ host: "https://h", exec: { apiVersion, command } }, newFakeClock(), () => notifications++);
  await give(pair("a"));
  assert.deepEqual(await credentials.headers(), {});
  assert.deepEqual([credentials.certificate(), notifications], [{ cert: "cert a", key: "key a" }, 0]);
  credentials.rejected({});
  await credentials.headers();
  assert.equal(notifications, 0, "it is the same");
  await give(pair("b"));
  credentials.rejected({});
  assert.deepEqual(credentials.certificate(), { cert: "cert a", key: "key a" });
  await credentials.headers();
  await credentials.headers();
  assert.deepEqual([credentials.certificate(), notifications], [{ cert: "cert b", key: "key b" }, 1]);
  credentials.rejected({});
  for (const { status, version, want } of [
    { status: undefined, want: /didn't return a status field/ },
    { status: {}, want: /didn't return a token or cert\/key pair/ },
    { status: { clientCertificateData: "c" }, want: /only certificate or key, not both/ },
    { status: { token: "t", clientKeyData: "k" }, want: /only certificate or key, not both/ },
    {
      status: { token: "t" },
      version: "client.authentication.k8s.io/v1beta1",
      want: /plugin returned version client.auth.*v1beta1/,
    },
  ]) {
    await give(status, version);
    await assert.rejects(async () => await credentials.headers(), want);
  }
  await writeFile(answer, "null");
  await assert.rejects(
    async () => await credentials.headers(),
    /configured to use API version .*\/v1, plugin returned version undefined$/,
  );
  await give({ token: "t" });
  assert.deepEqual(await credentials.headers(), { authorization: "Bearer t" });
  assert.deepEqual([credentials.certificate(), notifications], [undefined, 2]);
});

test("flags name the server, a kubeconfig, or both; without either the Pod's credentials are used", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cox-flags-"));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, "kubeconfig");
  await writeFile(file, kubeconfig(`{server: "https://h"}`, "{token: t}"));
  assert.deepEqual(await configFromFlags("", "10.0.0.1:8080"), { host: "http://10.0.0.1:8080" });
  assert.deepEqual(await configFromFlags("", "https://m"), { host: "https://m" });
  const kubeconfigFile = file;
  assert.deepEqual(await configFromFlags(file, ""), { host: "https://h", token: "t", kubeconfigFile });
  assert.deepEqual(await configFromFlags(file, "https://m"), { host: "https://m", token: "t", kubeconfigFile });
  await assert.rejects(configFromFlags("", ""), /unable to load in-cluster configuration/);
});

test("a program in a Pod finds the cluster", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cox-sa-"));
  t.after(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "token"), "t\n");
  await writeFile(join(directory, "ca.crt"), "CA");
  const config = await inClusterConfig({ KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" }, directory);
  assert.deepEqual(config, {
    host: "https://[fd00::1]:443",
    token: "t",
    tokenFile: join(directory, "token"),
    caFile: join(directory, "ca.crt"),
  });
  await assert.rejects(inClusterConfig({}, directory), /unable to load in-cluster configuration/);
});
