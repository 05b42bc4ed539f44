import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { configFromFlags } from "./config.ts";
import { kubeApiserver } from "./flags.ts";

const argv = ["--etcd-servers=http://127.0.0.1:2379", "--service-account-issuer=https://issuer", "--advertise-address=192.0.2.1"];
const keys = ["--service-account-key-file=/x.pub", "--service-account-signing-key-file=/x.key"];
const configOf = (...flags: string[]) => configFromFlags(parseFlags(kubeApiserver.flags, [...argv, ...keys, ...flags]).values);

for (const port of [0, -1, 65_536]) {
  test(`--secure-port=${port} ends the start`, () => {
    assert.throws(() => configOf(`--secure-port=${port}`), {
      message: `--secure-port ${port} must be between 1 and 65535, inclusive. It cannot be turned off with 0`,
    });
  });
}

test("a cipher suite that is unknown, or that the runtime lacks, ends the start and is named", () => {
  const start = (suite: string) => () => configOf(`--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA,${suite}`);
  assert.throws(start("TLS_MOON"), { message: "Cipher suite TLS_MOON not supported or doesn't exist" });
  assert.throws(start("TLS_RSA_WITH_RC4_128_SHA"), /TLS_RSA_WITH_RC4_128_SHA/);
  assert.doesNotThrow(start("TLS_RSA_WITH_AES_128_CBC_SHA256"));
});

test("several problems are told at once", () => {
  assert.throws(() => configOf("--secure-port=0", "--goaway-chance=1"), /^.*\[--secure-port 0 .*, --goaway-chance .*\]$/);
});
