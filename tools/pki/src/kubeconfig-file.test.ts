import assert from "node:assert/strict";
import { test } from "node:test";
import { readKubeconfig, withAuthority, withCertificate } from "./kubeconfig-file.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("clusters and users of a kubeconfig are read: embedded certificates, and files beside it or elsewhere", () => {
  const text = JSON.stringify({
    clusters: [
      { cluster: { server: "https://a:1", "certificate-authority-data": base64("CA 1") } },
      { cluster: { server: "https://b:1", "certificate-authority-data": base64("CA 2") } },
      { cluster: { "certificate-authority": "ca.crt" } },
      {},
    ],
    users: [
      { name: "embedded", user: { "client-certificate-data": base64("CERT"), "client-key-data": base64("KEY") } },
      { name: "without key", user: { "client-certificate-data": base64("CERT 2") } },
      { name: "beside", user: { "client-certificate": "pki/a.crt" } },
      { name: "elsewhere", user: { "client-certificate": "/var/a.crt" } },
      { name: "token", user: { token: "t" } },
      { name: "nothing" },
    ],
  });
  assert.deepEqual(readKubeconfig(text, "/etc/x/admin.conf"), {
    servers: ["https://a:1", "https://b:1"],
    authorities: ["CA 1", "CA 2"],
    users: [
      { user: "embedded", certPem: "CERT", keyPem: "KEY" },
      { user: "without key", certPem: "CERT 2" },
      { user: "beside", file: "/etc/x/pki/a.crt" },
      { user: "elsewhere", file: "/var/a.crt" },
    ],
  });
  for (const other of ["", "text", "[]"]) assert.throws(() => readKubeconfig(other, "f"), { message: "it is not a kubeconfig" });
  assert.deepEqual(readKubeconfig("{}", "f"), { servers: [], authorities: [], users: [] });
});

test("a certificate is replaced wherever it stands, an authority only where it is whole", () => {
  const [old, longer] = ["o>>o>>", "o>>o>>+more"];
  assert.match(base64(old), /\+/, "the text has a sign that expressions read otherwise");
  const text = `a: ${base64(old)}\nb: ${base64(longer)}\nc: ${base64(old)}\n`;
  assert.equal(withAuthority(text, old, "new"), `a: ${base64("new")}\nb: ${base64(longer)}\nc: ${base64("new")}\n`);
  assert.equal(
    withCertificate(`a: ${base64(old)}\nc: ${base64(old)}\n`, old, "new"),
    `a: ${base64("new")}\nc: ${base64("new")}\n`,
  );
  assert.equal(withAuthority(text, "absent", "new"), undefined);
  assert.equal(withCertificate(text, "absent", "new"), undefined);
});
