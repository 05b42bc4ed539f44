import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac, X509Certificate } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newCertificateRequest, subjectOf } from "@coxswain/apimachinery/serving/certificates";
import { programOf } from "@coxswain/dev-cluster/daemons";
import { pkiFile } from "@coxswain/dev-cluster/pki";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { waitFor } from "../framework/wait-for.ts";

interface Csr {
  metadata: { name: string };
  spec: { username: string };
  status: { certificate?: string; conditions?: { type: string; message: string }[] };
}

const authority = (): X509Certificate => new X509Certificate(readFileSync(pkiFile(settings, "ca.crt")));
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const unique = (): string => process.pid.toString(36).padStart(6, "0").slice(-6);

/** Creates a cluster-scoped object that is deleted after the test. */
async function create(t: TestContext, ...args: string[]): Promise<void> {
  await kubectl("create", ...args);
  t.after(() => tryKubectl(["delete", args[0] ?? "", args[1] === "generic" ? (args[2] ?? "") : (args[1] ?? "")]));
}

async function request(t: TestContext, name: string, spec: object): Promise<void> {
  const csr = { apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name }, spec };
  await kubectl("create", "-f", "-", { input: JSON.stringify(csr) });
  t.after(() => tryKubectl(["delete", "csr", name]));
}

test("a user's certificate is issued when it is approved, and opens the cluster", async (t) => {
  const name = `e2e-user-${unique()}`;
  const { csrPem, keyPem } = await newCertificateRequest({ commonName: name, organizations: ["devs"] });
  const signerName = "kubernetes.io/kube-apiserver-client";
  await request(t, name, { request: base64(csrPem), signerName, usages: ["client auth"], expirationSeconds: 3600 });
  await kubectl("certificate", "approve", name);
  await waitFor("the certificate", async () => /Approved,Issued$/m.test(await kubectl("get", "csr", name)));
  const pem = Buffer.from((await getJson<Csr>("csr", name)).status.certificate ?? "", "base64").toString();
  const certificate = new X509Certificate(pem);
  assert.ok(certificate.verify(authority().publicKey));
  const hours = (Date.parse(certificate.validTo) - Date.now()) / 3_600_000;
  assert.ok(hours > 0.9 && hours <= 1, String(hours));

  const folder = mkdtempSync(join(tmpdir(), "cox-csr-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "crt"), pem);
  writeFileSync(join(folder, "key"), keyPem, { mode: 0o600 });
  const config = join(folder, "config");
  const kubeconfig = ["--kubeconfig", config, "config"];
  const cluster = [
    "--server",
    `https://127.0.0.1:${settings.ports.apiserver}`,
    "--certificate-authority",
    pkiFile(settings, "ca.crt"),
  ];
  await kubectl(...kubeconfig, "set-cluster", "c", ...cluster);
  await kubectl(
    ...kubeconfig,
    "set-credentials",
    "u",
    "--client-certificate",
    join(folder, "crt"),
    "--client-key",
    join(folder, "key"),
  );
  await kubectl(...kubeconfig, "set-context", "x", "--cluster=c", "--user=u");
  const refused = await tryKubectl(["--kubeconfig", config, "--context=x", "get", "nodes"]);
  assert.match(refused.stderr, new RegExp(`User "${name}" cannot list resource "nodes"`));
});

for (const { name, spec, refusal, failure } of [
  {
    name: "system:masters through the signer of clients is refused at once",
    spec: { signerName: "kubernetes.io/kube-apiserver-client", commonName: "eve", organizations: ["system:masters"] },
    refusal: /use of kubernetes.io\/kube-apiserver-client signer with system:masters group is not allowed/,
  },
  {
    name: "system:masters through the signer of nodes fails when it is approved",
    spec: {
      signerName: "kubernetes.io/kube-apiserver-client-kubelet",
      commonName: "system:node:eve",
      organizations: ["system:masters"],
    },
    failure: "subject organization is not system:nodes",
  },
  {
    name: "a service account's name through the signer of nodes fails when it is approved",
    spec: {
      signerName: "kubernetes.io/kube-apiserver-client-kubelet",
      commonName: "system:serviceaccount:kube-system:default",
      organizations: ["system:nodes"],
    },
    failure: "subject common name does not begin with system:node:",
  },
] as {
  name: string;
  spec: { signerName: string; commonName: string; organizations: string[] };
  refusal?: RegExp;
  failure?: string;
}[]) {
  test(name, async (t) => {
    const csr = `e2e-eve-${unique()}`;
    const { csrPem } = await newCertificateRequest(spec);
    const usages = ["client auth", "digital signature", "key encipherment"];
    const made = request(t, csr, { request: base64(csrPem), signerName: spec.signerName, usages });
    if (refusal !== undefined) return assert.rejects(made, refusal);
    await made;
    await kubectl("certificate", "approve", csr);
    const status = await waitFor("the failure", async () => {
      const { status } = await getJson<Csr>("csr", csr);
      return status.conditions?.length === 2 && status;
    });
    assert.equal(status.conditions?.[1]?.message, failure);
    assert.equal(status.certificate, undefined);
    assert.match(await kubectl("get", "csr", csr), /Approved,Failed$/m);
  });
}

/** Creates a bootstrap token whose group may request node certificates, which are approved automatically. @returns the token */
async function joiningToken(t: TestContext): Promise<{ id: string; secret: string }> {
  const [id, secret, group] = [unique(), "0123456789abcdef", `system:bootstrappers:e2e-${unique()}`];
  await create(t, "clusterrolebinding", `e2e-ask-${id}`, "--clusterrole=system:node-bootstrapper", `--group=${group}`);
  const approving = "--clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient";
  await create(t, "clusterrolebinding", `e2e-approve-${id}`, approving, `--group=${group}`);
  const token = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `bootstrap-token-${id}`, namespace: "kube-system" },
    type: "bootstrap.kubernetes.io/token",
    stringData: {
      "token-id": id,
      "token-secret": secret,
      "usage-bootstrap-authentication": "true",
      "usage-bootstrap-signing": "true",
      "auth-extra-groups": group,
    },
  };
  await kubectl("create", "-f", "-", { input: JSON.stringify(token) });
  t.after(() => tryKubectl(["delete", "secret", "-n", "kube-system", `bootstrap-token-${id}`]));
  return { id, secret };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

test("a kubelet joins with a bootstrap token: it asks for its certificate, gets it, and registers its node with it", async (t) => {
  if (!settings.asRoot) return t.skip("a kubelet needs root");
  const node = `e2e-join-${unique()}`;
  const { id, secret } = await joiningToken(t);
  const folder = mkdtempSync(join(tmpdir(), "cox-join-"));
  const [bootstrap, own] = [join(folder, "bootstrap.conf"), join(folder, "kubelet.conf")];
  const ca = readFileSync(pkiFile(settings, "ca.crt"), "utf8");
  const cluster = { server: `https://127.0.0.1:${settings.ports.apiserver}`, "certificate-authority-data": base64(ca) };
  const config = {
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: { token: `${id}.${secret}` } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(bootstrap, JSON.stringify(config), { mode: 0o600 });
  const flags = [
    `--bootstrap-kubeconfig=${bootstrap}`,
    `--kubeconfig=${own}`,
    `--cert-dir=${join(folder, "pki")}`,
    `--root-dir=${join(folder, "root")}`,
    `--hostname-override=${node}`,
    `--port=${await freePort()}`,
    "--healthz-port=0",
    "--read-only-port=0",
    // It only has to join: it has no container runtime and no cgroup, and no pods are scheduled to it.
    "--container-runtime=remote",
    `--container-runtime-endpoint=unix://${join(folder, "no-runtime.sock")}`,
    "--cgroups-per-qos=false",
    "--enforce-node-allocatable=",
    "--register-schedulable=false",
    "--fail-swap-on=false",
  ];
  const kubelet = spawn(process.execPath, [programOf(settings, "kubelet"), ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [kubelet.stdout, kubelet.stderr]) stream.on("data", (chunk: Buffer) => (log += chunk));
  const ended = new Promise((resolve) => kubelet.once("close", resolve));
  t.after(async () => {
    kubelet.kill();
    await ended;
    await tryKubectl(["delete", "node", node]);
    for (const { metadata, spec } of (await getJson<{ items: Csr[] }>("csr")).items)
      if (spec.username === `system:bootstrap:${id}`) await tryKubectl(["delete", "csr", metadata.name]);
    rmSync(folder, { recursive: true, force: true });
  });
  await waitFor("the node's own kubeconfig", async () => existsSync(own)).catch((err) => {
    throw new Error(log, { cause: err });
  });
  const certificate = new X509Certificate(readFileSync(join(folder, "pki", "kubelet-client-current.pem")));
  assert.deepEqual(subjectOf(certificate), { commonName: `system:node:${node}`, organizations: ["system:nodes"] });
  assert.ok(certificate.verify(authority().publicKey));
  assert.match(await kubectl("get", "csr"), new RegExp(`system:bootstrap:${id} .*Approved,Issued$`, "m"));
  await waitFor("the node", async () => (await tryKubectl(["get", "node", node])).code === 0);
  assert.match(await kubectl("--kubeconfig", own, "get", "node", node, "-o", "name"), new RegExp(node));
});

test("cluster-info is signed with the token, so that who has it can trust what anyone may read", async (t) => {
  const { id, secret } = await joiningToken(t);
  const before = await tryKubectl(["get", "configmap", "cluster-info", "-n", "kube-public"]);
  if (before.code !== 0) {
    await kubectl("create", "configmap", "cluster-info", "-n", "kube-public", "--from-literal=kubeconfig=the cluster");
    t.after(() => kubectl("delete", "configmap", "cluster-info", "-n", "kube-public"));
  }
  const data = await waitFor("the signature", async () => {
    const { data } = await getJson<{ data: Record<string, string> }>("configmap", "cluster-info", "-n", "kube-public");
    return data[`jws-kubeconfig-${id}`] !== undefined && data;
  });
  const header = Buffer.from(`{"alg":"HS256","kid":"${id}"}`).toString("base64url");
  const content = Buffer.from(data["kubeconfig"] ?? "").toString("base64url");
  const signature = createHmac("sha256", secret).update(`${header}.${content}`).digest("base64url");
  assert.equal(data[`jws-kubeconfig-${id}`], `${header}..${signature}`);
});
