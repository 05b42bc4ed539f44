import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { answerOf, openCredentialProviders } from "./credential-providers.ts";
import { ImagePuller } from "./images.ts";

const version = "credentialprovider.kubelet.k8s.io/v1alpha1";
const good = { name: "plugin", matchImages: ["*.registry.test"], defaultCacheDuration: "1m", apiVersion: version };

/** A plugin as a shell script; records its input and prints the given response. */
function open(t: TestContext, providers: object[], script: string) {
  const directory = mkdtempSync(join(tmpdir(), "cox-plugins-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const requested = join(directory, "requested");
  writeFileSync(requested, "");
  writeFileSync(join(directory, "plugin"), `#!/bin/sh\n{ cat; echo " $* $WHO"; } >> ${requested}\n${script}\n`);
  chmodSync(join(directory, "plugin"), 0o755);
  const configFile = join(directory, "config.yaml");
  writeFileSync(
    configFile,
    JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1alpha1", kind: "CredentialProviderConfig", providers }),
  );
  const clock = newFakeClock();
  return {
    clock,
    providers: () => openCredentialProviders({ configFile, binDir: directory, clock, log: discardLogger }),
    requested: () => readFileSync(requested, "utf8").split("\n").slice(0, -1),
  };
}

const answer = (more: object = {}): string =>
  `echo '${JSON.stringify({
    kind: "CredentialProviderResponse",
    apiVersion: version,
    cacheKeyType: "Registry",
    auth: { "*.registry.test": { username: "u", password: "p" } },
    ...more,
  })}'`;

test("a credential plugin runs for matching images, with its arguments and variables, once per cache duration", async (t) => {
  const given = { ...good, args: ["get", "a b"], env: [{ name: "WHO", value: "me" }] };
  const { providers, clock, requested } = open(t, [given], answer());
  const { loginsFor } = providers();
  const image = "a.registry.test/team/app:1";
  assert.deepEqual(await loginsFor("elsewhere.test/app:1"), []);
  assert.deepEqual(await loginsFor("a.b.registry.test/app:1"), [], "a star is one part of a name");
  assert.deepEqual(await loginsFor(image), [
    { pattern: "*.registry.test", auth: { username: "u", password: "p", identityToken: "" } },
  ]);
  assert.deepEqual(requested(), [`{"kind":"CredentialProviderRequest","apiVersion":"${version}","image":"${image}"} get a b me`]);
  await Promise.all([loginsFor(image), loginsFor("a.registry.test/other:2")]);
  assert.equal(requested().length, 1, "the answer was for the registry");
  await loginsFor("b.registry.test/app:1");
  assert.equal(requested().length, 2);
  await clock.advance(60_000);
  await Promise.all([loginsFor(image), loginsFor(image)]);
  assert.equal(requested().length, 3);
});

for (const { cacheKeyType, cacheDuration, want } of [
  { cacheKeyType: "Image", cacheDuration: "10s", want: 2 },
  { cacheKeyType: "Registry", cacheDuration: "10s", want: 1 },
  { cacheKeyType: "Global", cacheDuration: "10s", want: 1 },
  { cacheKeyType: "Global", cacheDuration: "0s", want: 3 },
]) {
  test(`with cacheKeyType ${cacheKeyType} and cacheDuration ${cacheDuration} the plugin runs ${want} times`, async (t) => {
    const { providers, requested } = open(t, [good], answer({ cacheKeyType, cacheDuration }));
    const { loginsFor } = providers();
    for (const image of ["a.registry.test/x:1", "a.registry.test/x:1", "a.registry.test/y:1"]) await loginsFor(image);
    assert.equal(requested().length, want);
  });
}

for (const [what, script] of [
  ["fails", "exit 1"],
  ["writes something else", "echo hello"],
  ["answers another kind", `echo '{"kind":"Pod","apiVersion":"v1"}'`],
  ["never ends its answer", "head -c 2000000 /dev/zero"],
] as const) {
  test(`a plugin that ${what} gives no credentials`, async (t) => {
    assert.deepEqual(await open(t, [good], script).providers().loginsFor("a.registry.test/x:1"), []);
  });
}

for (const { bytes, want } of [
  { bytes: 1024 * 1024, want: 1 },
  { bytes: 1024 * 1024 + 1, want: 0 },
]) {
  test(`a plugin's answer of ${bytes} bytes gives ${want} credentials`, async (t) => {
    const text = answer().slice("echo '".length, -1);
    const script = `printf '%s' '${text}'; head -c ${bytes - text.length} /dev/zero | tr '\\0' ' '`;
    assert.equal((await open(t, [good], script).providers().loginsFor("a.registry.test/x:1")).length, want);
  });
}

test("a plugin that failed runs again for the next pull, with the agent's own variables", async (t) => {
  const { providers, requested } = open(t, [{ ...good, env: [{ name: "OWN", value: "x" }] }], "exit 1");
  const { loginsFor } = providers();
  process.env["WHO"] = "the agent";
  t.after(() => delete process.env["WHO"]);
  for (let i = 1; i <= 2; i++) {
    await loginsFor("a.registry.test/x:1");
    assert.equal(requested().length, i);
  }
  assert.match(requested()[0] ?? "", / the agent$/);
});

for (const { name, providers, want } of [
  { name: "no providers", providers: [], want: /at least 1 item in plugins is required/ },
  { name: "a path as a name", providers: [{ ...good, name: "../plugin" }], want: /provider name cannot contain '\/'/ },
  { name: "a folder as a name", providers: [{ ...good, name: ".." }], want: /provider name cannot be '..'/ },
  { name: "the folder itself as a name", providers: [{ ...good, name: "." }], want: /provider name cannot be '\.'/ },
  { name: "a name of two words", providers: [{ ...good, name: "a b" }], want: /provider name cannot contain spaces/ },
  { name: "no name", providers: [good, { ...good, name: undefined }], want: /providers\.name: Required value: name is required/ },
  {
    name: "a negative time",
    providers: [{ ...good, defaultCacheDuration: "-1s" }],
    want: /defaultCacheDuration must be greater than or equal to 0/,
  },
  { name: "no images", providers: [{ ...good, matchImages: [] }], want: /at least 1 item in matchImages is required/ },
  { name: "no time", providers: [{ ...good, defaultCacheDuration: undefined }], want: /defaultCacheDuration is required/ },
  { name: "another version", providers: [{ ...good, apiVersion: "v2" }], want: /Unsupported value: "v2"/ },
  {
    name: "a program that is not there",
    providers: [{ ...good, name: "other" }],
    want: /plugin binary executable .*\/other did not exist/,
  },
]) {
  test(`a configuration with ${name} prevents the start`, (t) => {
    assert.throws(open(t, providers, "").providers, (err) => err instanceof ConfigError && want.test(err.message));
  });
}

const unreadable = (path: string): string => `unable to read external registry credential provider configuration from "${path}"`;
const another = (path: string): string =>
  `failed to decode ${path}: no CredentialProviderConfig of kubelet.config.k8s.io/v1alpha1`;
for (const { name, text, want } of [
  { name: "that is not there", text: undefined, want: unreadable },
  { name: "that is no YAML", text: "kind: [", want: unreadable },
  { name: "that is no object", text: "[]", want: another },
  { name: "of another kind", text: "kind: Pod\napiVersion: kubelet.config.k8s.io/v1alpha1", want: another },
  { name: "of another version", text: "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1", want: another },
]) {
  test(`a configuration ${name} prevents the start with an error that names its file`, (t) => {
    const directory = mkdtempSync(join(tmpdir(), "cox-plugins-"));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    const configFile = join(directory, "config.yaml");
    if (text !== undefined) writeFileSync(configFile, text);
    assert.throws(
      () => openCredentialProviders({ configFile, binDir: directory, clock: newFakeClock(), log: discardLogger }),
      (err) => err instanceof ConfigError && err.message === want(configFile),
    );
  });
}

test("an answer without a time of its own is not kept when the configuration's time is zero", async (t) => {
  const { providers, requested } = open(t, [{ ...good, defaultCacheDuration: "0s" }], answer());
  const { loginsFor } = providers();
  for (let i = 1; i <= 2; i++) {
    await loginsFor("a.registry.test/x:1");
    assert.equal(requested().length, i);
  }
});

test("a credential provider's response without a cacheKeyType is invalid", () => {
  assert.throws(
    () => answerOf(JSON.stringify({ kind: "CredentialProviderResponse", apiVersion: version })),
    /valid cacheKeyType/,
  );
});

test("a pull uses the pod's own logins first, then the plugin's", async (t) => {
  const { providers, clock } = open(t, [good], answer());
  const runtime = newFakeRuntime(clock);
  const used: unknown[] = [];
  runtime.pullImage = async (_, auth) => {
    used.push(auth?.username);
    throw new Error("unauthorized");
  };
  const puller = new ImagePuller({ runtime, clock, serialize: true, qps: 0, burst: 0, credentialProviders: providers() });
  const auths = { "a.registry.test": { username: "own", password: "x" } };
  const secret = {
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": Buffer.from(JSON.stringify({ auths })).toString("base64") },
  };
  const container = aContainer({ image: "a.registry.test/app:1" });
  await assert.rejects(puller.ensure(aNodePod(), container, [secret as never], {}, () => {}));
  assert.deepEqual(used, ["own", "u"]);
});
