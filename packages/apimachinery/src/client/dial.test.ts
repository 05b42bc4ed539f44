import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ClientConfig } from "./config.ts";
import { connectHost, pem, stripBrackets, tlsOptions } from "./dial.ts";

const ofPlugin = { cert: "plugin's", key: "its key" };
const own = { cert: "own", key: "own key" };

for (const { name, config = {}, certificate, want } of [
  { name: "no certificate", want: {} },
  { name: "a plugin's certificate", certificate: ofPlugin, want: ofPlugin },
  { name: "the configuration's certificate, though a plugin has one", config: own, certificate: ofPlugin, want: own },
  { name: "the configured authorities", config: { ca: "CA" }, want: { ca: "CA" } },
  { name: "no verification on request", config: { insecure: true }, want: { rejectUnauthorized: false } },
  { name: "another server name", config: { serverName: "other" }, want: { servername: "other" } },
  { name: "no server name for an address", config: { serverName: "10.0.0.1" }, want: { servername: undefined } },
] as { name: string; config?: Partial<ClientConfig>; certificate?: typeof ofPlugin; want: object }[]) {
  test(`a connection has ${name}`, async () => {
    const url = new URL("https://api:6443");
    const { ca, cert, key, rejectUnauthorized, servername } = await tlsOptions(url, { host: url.href, ...config }, certificate);
    const byDefault = { ca: undefined, cert: undefined, key: undefined, rejectUnauthorized: true, servername: "api" };
    assert.deepEqual({ ca, cert, key, rejectUnauthorized, servername }, { ...byDefault, ...want });
  });
}

test("a server without a port is that of HTTPS; brackets around an address are not passed on", async () => {
  const dialled: [string, number][] = [];
  const dial = (host: string, port: number): Promise<never> => {
    dialled.push([host, port]);
    return Promise.reject(new Error("no way"));
  };
  for (const url of ["https://api", "https://[fd00::1]:6443"])
    await assert.rejects(connectHost(new URL(url), {}, dial), /no way/);
  assert.deepEqual(dialled, [
    ["api", 443],
    ["fd00::1", 6443],
  ]);
});

test("an empty text counts as none: the file is read", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "dial-"));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, "ca.crt");
  await writeFile(file, "of the file");
  assert.deepEqual(await Promise.all([pem("", file), pem("text", file), pem("", ""), pem(undefined, undefined)]), [
    "of the file",
    "text",
    undefined,
    undefined,
  ]);
});

test("a certificate file that cannot be read is an error", async () => {
  const config = { host: "https://api", certFile: "/nowhere/c.crt", keyFile: "/nowhere/c.key" };
  await assert.rejects(tlsOptions(new URL(config.host), config, ofPlugin), { code: "ENOENT" });
});

test("the brackets of an IPv6 address are no part of it", () => {
  assert.deepEqual([stripBrackets("[fd00::1]"), stripBrackets("api")], ["fd00::1", "api"]);
});
