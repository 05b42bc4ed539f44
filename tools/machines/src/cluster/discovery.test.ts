import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { authorityHash } from "./authority-hash.ts";
import { discover } from "./discovery.ts";

const token = { id: "abcdef", secret: "0123456789abcdef" };
const base64 = (text: string): string => Buffer.from(text).toString("base64url");

function signatureOf(content: string, secret: string): string {
  const header = base64('{"alg":"HS256","kid":"abcdef"}');
  return `${header}..${createHmac("sha256", secret)
    .update(`${header}.${base64(content)}`)
    .digest("base64url")}`;
}

const kubeconfig = (server: string, caPem: string): string =>
  JSON.stringify({
    clusters: [{ name: "", cluster: { server, "certificate-authority-data": Buffer.from(caPem).toString("base64") } }],
  });

interface Served {
  readonly info: string;
  /** Secret of the signature; undefined: there is none. */
  readonly secret?: string;
  readonly status?: number;
}

/** An API server that shows cluster-info as `answers` has it at each request, the last one from then on. */
async function aServer(t: TestContext, identity: { certPem: string; keyPem: string }, answers: readonly Served[]) {
  const paths: string[] = [];
  const server = createServer({ cert: identity.certPem, key: identity.keyPem }, (req, res) => {
    const { info, secret, status = 200 } = answers[Math.min(paths.length, answers.length - 1)]!;
    paths.push(`${req.method} ${req.url}`);
    const data = { kubeconfig: info, ...(secret !== undefined && { "jws-kubeconfig-abcdef": signatureOf(info, secret) }) };
    res.writeHead(status, { "content-type": "application/json" });
    res.end(JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "cluster-info" }, data }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { endpoint: `127.0.0.1:${(server.address() as AddressInfo).port}`, paths };
}

const ca = await newCa({ commonName: "kubernetes" });
const identity = await newCertificate({ commonName: "kube-apiserver", ips: ["127.0.0.1"], usages: ["server"], ca });
const hash = authorityHash(ca.certPem);
const info = kubeconfig("https://lb.test:6443", ca.certPem);
const signed: Served = { info, secret: token.secret };

test("a cluster is known by its signed cluster-info, and asked again with its authority, once the signature is there", async (t) => {
  const { endpoint, paths } = await aServer(t, identity, [{ info, status: 404 }, { info }, signed]);
  const found = await discover({ endpoint, token, hashes: [hash], timeoutMs: 60_000 });
  assert.deepEqual(found, { server: "https://lb.test:6443", caPem: ca.certPem });
  assert.deepEqual(
    paths,
    Array.from({ length: 4 }, () => "GET /api/v1/namespaces/kube-public/configmaps/cluster-info"),
  );
});

const other = await newCa({ commonName: "other" });
for (const [name, served, hashes, message] of [
  [
    "an authority of another hash",
    signed,
    [authorityHash(other.certPem)],
    () =>
      `the cluster's authority has the hash ${hash}, which is not among the given ones: this is another cluster, or someone intercepts the connection`,
  ],
  [
    "a signature of another secret",
    { info, secret: "0123456789abcdeF" },
    [hash],
    () => "cluster-info is not signed with the secret of token abcdef",
  ],
  [
    "an unknown token",
    { info },
    [hash],
    (host: string) =>
      `waited 0.001s for ${host} to show cluster-info signed with token abcdef: cluster-info has no signature of token abcdef: it has expired or does not exist; for a new one: coxswain token create --print-join-command; check the address, and on a machine of the control plane: coxswain token list`,
  ],
  [
    "a server that refuses",
    { ...signed, status: 403 },
    [],
    (host: string) =>
      `waited 0.001s for ${host} to show cluster-info signed with token abcdef: the response for cluster-info is 403; check the address, and on a machine of the control plane: coxswain token list`,
  ],
  [
    "an info without a cluster",
    { info: "{}", secret: token.secret },
    [hash],
    (host: string) => `${host}: it has no cluster with server and certificate-authority-data`,
  ],
] as const)
  test(`${name} is not joined`, async (t) => {
    const { endpoint } = await aServer(t, identity, [served]);
    await assert.rejects(discover({ endpoint, token, hashes, timeoutMs: 1 }), {
      message: message(`https://${endpoint}`),
      exitCode: 1,
    });
  });

test("a server whose certificate is not of the authority in cluster-info is not joined, whatever it knows", async (t) => {
  const stranger = await newCertificate({ commonName: "kube-apiserver", ips: ["127.0.0.1"], usages: ["server"], ca: other });
  const { endpoint } = await aServer(t, stranger, [signed]);
  await assert.rejects(discover({ endpoint, token, hashes: [hash], timeoutMs: 1 }), ({ message }: Error) => {
    assert.ok(
      message.startsWith(`waited 0.001s for https://${endpoint} to show a certificate of the cluster's authority: `),
      message,
    );
    assert.ok(message.endsWith("; its certificate must contain the address (apiServer.certSANs)"), message);
    return true;
  });
});
