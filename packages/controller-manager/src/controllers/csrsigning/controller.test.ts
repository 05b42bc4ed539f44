import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newCa, subjectOf } from "@coxswain/apimachinery/serving/certificates";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { SignerName, SigningFiles } from "../../config/certificate-signing.ts";
import { aCertificateRequest, type RequestedCertificate } from "../../testing/certificate-requests.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newCsrSigningController } from "./controller.ts";

type T = { after(fn: () => void): void };

const everySigner: SignerName[] = [
  "kubernetes.io/kubelet-serving",
  "kubernetes.io/kube-apiserver-client-kubelet",
  "kubernetes.io/kube-apiserver-client",
  "kubernetes.io/legacy-unknown",
];

/** Writes the files of a new CA; `replace` overwrites them with another CA. */
async function authority(t: T): Promise<{ files: SigningFiles; replace: () => Promise<X509Certificate>; root: X509Certificate }> {
  const folder = mkdtempSync(join(tmpdir(), "cox-signing-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = { cert: join(folder, "ca.crt"), key: join(folder, "ca.key") };
  const replace = async (): Promise<X509Certificate> => {
    const ca = await newCa({ commonName: "kubernetes" });
    writeFileSync(files.cert, ca.certPem);
    writeFileSync(files.key, ca.keyPem);
    return new X509Certificate(ca.certPem);
  };
  return { files, replace, root: await replace() };
}

async function world(t: T, signers: readonly SignerName[] = everySigner, durationMs = 31_536_000_000) {
  const { files, replace, root } = await authority(t);
  const config = { certificateSigning: { files: new Map(signers.map((signer) => [signer, files])), durationMs } };
  const context = newTestContext(t, config);
  const status = (name = "csr-1") =>
    context.client.object<CertificateSigningRequest>(certificateSigningRequests, name)?.status ?? {};
  const certificate = async (name = "csr-1"): Promise<X509Certificate> => {
    await waitFor(() => status(name).certificate !== undefined);
    return new X509Certificate(Buffer.from(status(name).certificate ?? "", "base64"));
  };
  return { ...context, files, replace, root, status, certificate };
}

const serving = { signer: "kubernetes.io/kubelet-serving", usages: ["server auth", "digital signature", "key encipherment"] };
const client = { signer: "kubernetes.io/kube-apiserver-client", commonName: "jane", organizations: ["devs"] };
const approved = [{ type: "Approved" }];

for (const { name, csr, subject, usages } of [
  { name: "a node's client certificate", csr: {}, subject: ["system:node:n1", "system:nodes"], usages: ["1.3.6.1.5.5.7.3.2"] },
  {
    name: "a node's serving certificate",
    csr: { ...serving, dnsNames: ["n1"] },
    subject: ["system:node:n1", "system:nodes"],
    usages: ["1.3.6.1.5.5.7.3.1"],
  },
  {
    name: "a person's client certificate",
    csr: { ...client, usages: ["client auth"] },
    subject: ["jane", "devs"],
    usages: ["1.3.6.1.5.5.7.3.2"],
  },
  {
    name: "anything for the old signer",
    csr: { signer: "kubernetes.io/legacy-unknown", commonName: "x", organizations: [], usages: ["timestamping"] },
    subject: ["x"],
    usages: ["1.3.6.1.5.5.7.3.8"],
  },
] as { name: string; csr: RequestedCertificate; subject: string[]; usages: string[] }[]) {
  test(`issues ${name} when it is approved`, async (t) => {
    const { ctx, client, run, certificate, root, clock } = await world(t);
    client.put(certificateSigningRequests, await aCertificateRequest({ ...csr, conditions: approved }));
    await run(newCsrSigningController(ctx));
    const issued = await certificate();
    assert.ok(issued.verify(root.publicKey));
    assert.equal(issued.ca, false);
    const { commonName, organizations } = subjectOf(issued);
    assert.deepEqual([commonName, ...organizations], subject);
    assert.deepEqual(issued.keyUsage, usages);
    assert.equal(issued.serialNumber.length, 32, "too long to be guessed or to come twice");
    assert.equal(Date.parse(issued.validFrom), Math.floor((clock.now() - 300_000) / 1000) * 1000);
  });
}

for (const { name, csr, message } of [
  { name: "a node's client certificate with names", csr: { dnsNames: ["n1"] }, message: "DNS subjectAltNames are not allowed" },
  {
    name: "a node's certificate of another group",
    csr: { organizations: ["system:masters"] },
    message: "subject organization is not system:nodes",
  },
  {
    name: "a node's certificate of no node",
    csr: { commonName: "jane" },
    message: "subject common name does not begin with system:node:",
  },
  {
    name: "a node's client certificate to serve with",
    csr: { usages: ["server auth"] },
    message: "usages did not match [client auth digital signature key encipherment]",
  },
  { name: "a node's serving certificate without names", csr: serving, message: "DNS or IP subjectAltName is required" },
  {
    name: "a node's serving certificate to connect with",
    csr: { ...serving, dnsNames: ["n1"], usages: ["client auth"] },
    message: "usages did not match [digital signature key encipherment server auth]",
  },
  {
    name: "a person's certificate to sign with",
    csr: { ...client, usages: ["cert sign"] },
    message: "invalid usage for client certificate: cert sign",
  },
  {
    name: "a person's certificate without its use",
    csr: { ...client, usages: ["digital signature"] },
    message: "missing required usage for client certificate: client auth",
  },
] as { name: string; csr: RequestedCertificate; message: string }[]) {
  test(`${name} fails, with the reason`, async (t) => {
    const { ctx, client, run, status } = await world(t);
    client.put(certificateSigningRequests, await aCertificateRequest({ ...csr, conditions: approved }));
    await run(newCsrSigningController(ctx));
    await waitFor(() => status().conditions?.length === 2);
    const { type, reason, message: said } = status().conditions?.[1] ?? {};
    assert.deepEqual([type, reason, said], ["Failed", "SignerValidationFailure", message]);
    assert.equal(status().certificate, undefined);
  });
}

for (const { name, csr } of [
  { name: "is not approved", csr: {} },
  { name: "was denied as well", csr: { conditions: [...approved, { type: "Denied" }] } },
  { name: "failed", csr: { conditions: [...approved, { type: "Failed" }] } },
  { name: "is for a signer of someone else", csr: { signer: "example.com/mine", conditions: approved } },
  { name: "is for a signer without files", csr: { ...serving, dnsNames: ["n1"], conditions: approved } },
] as { name: string; csr: RequestedCertificate }[]) {
  test(`leaves alone what ${name}`, async (t) => {
    const { ctx, client, run, certificate } = await world(t, ["kubernetes.io/kube-apiserver-client-kubelet"]);
    client.put(
      certificateSigningRequests,
      await aCertificateRequest(csr),
      await aCertificateRequest({ name: "csr-2", conditions: approved }),
    );
    await run(newCsrSigningController(ctx));
    await certificate("csr-2");
    await settle(20);
    assert.deepEqual(
      client.writes.map((write) => write.name),
      ["csr-2"],
    );
  });
}

test("a certificate is good as long as requested, and never longer than the flag says", async (t) => {
  const { ctx, client, run, certificate, clock } = await world(t, everySigner, 3_600_000);
  for (const [name, expirationSeconds] of [
    ["short", 1200],
    ["long", 86_400],
  ] as const)
    client.put(certificateSigningRequests, await aCertificateRequest({ name, expirationSeconds, conditions: approved }));
  await run(newCsrSigningController(ctx));
  const minutesLeft = async (name: string) => Math.round((Date.parse((await certificate(name)).validTo) - clock.now()) / 60_000);
  assert.equal(await minutesLeft("short"), 20);
  assert.equal(await minutesLeft("long"), 60);
});

test("signs with the pair that is in the files now, and with the last good one while they are no pair", async (t) => {
  const { ctx, client, run, certificate, replace, files, root } = await world(t);
  const ask = async (name: string): Promise<X509Certificate> => {
    client.put(certificateSigningRequests, await aCertificateRequest({ name, conditions: approved }));
    return certificate(name);
  };
  await run(newCsrSigningController(ctx));
  assert.ok((await ask("first")).verify(root.publicKey));
  const next = await replace();
  assert.ok((await ask("second")).verify(next.publicKey));
  writeFileSync(files.cert, root.toString());
  assert.ok((await ask("third")).verify(next.publicKey));
});

test("has nothing to do without files", (t) => {
  assert.equal(newCsrSigningController(newTestContext(t).ctx), undefined);
});
