import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { newHttp, startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
let jane: ReturnType<typeof newHttp>;
const group = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const rbac = "/apis/rbac.authorization.k8s.io/v1";

before(async () => {
  server = await startTestServer(undefined);
  jane = newHttp(server.url, server.ca, await server.clientCertificate("jane", ["developers"]));
  const all = { apiGroups: ["certificates.k8s.io"], verbs: ["*"] };
  const resources = ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"];
  // Jane has full access to CSRs, and may approve for one signer and sign for one domain.
  const rules = [
    { ...all, resources },
    { ...all, verbs: ["approve"], resources: ["signers"], resourceNames: ["example.com/one"] },
    { ...all, verbs: ["sign"], resources: ["signers"], resourceNames: ["example.com/*"] },
  ];
  await server.request("POST", `${rbac}/clusterroles`, { metadata: { name: "csr" }, rules });
  const { code, text } = await server.request("POST", `${rbac}/clusterrolebindings`, {
    metadata: { name: "csr" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "csr" },
    subjects: [{ kind: "User", name: "jane" }],
  });
  assert.equal(code, 201, text);
});
after(async () => {
  jane.close();
  await server.stop();
});

async function request(
  name: string,
  signerName: string,
  organizations: string[] = [],
): Promise<{ code: number; message: string }> {
  const { csrPem } = await newCertificateRequest({ commonName: "someone", organizations });
  const spec = { request: Buffer.from(csrPem).toString("base64"), signerName, usages: ["client auth"] };
  const { code, body } = await jane.request("POST", group, { metadata: { name }, spec });
  return { code, message: body.message };
}
async function change(name: string, subresource: string, status: object): Promise<{ code: number; message: string }> {
  const { body: csr } = await jane.request("GET", `${group}/${name}`);
  const { code, body } = await jane.request("PUT", `${group}/${name}/${subresource}`, {
    ...csr,
    status: { ...csr.status, ...status },
  });
  return { code, message: body.message };
}
const approved = { conditions: [{ type: "Approved", status: "True", reason: "Test", message: "fine" }] };
const failed = (reason: string): object => ({
  conditions: [...approved.conditions, { type: "Failed", status: "True", reason, message: "no" }],
});

test("approving requires the verb approve on the signer", async () => {
  assert.equal((await request("one", "example.com/one")).code, 201);
  assert.equal((await request("two", "example.com/two")).code, 201);
  const refused = await change("two", "approval", approved);
  assert.equal(refused.code, 403);
  assert.equal(
    refused.message,
    'certificatesigningrequests.certificates.k8s.io "two" is forbidden: user not permitted to approve requests with signerName "example.com/two"',
  );
  const passed = await change("one", "approval", approved);
  assert.equal(passed.code, 200, passed.message);
});

test("signing requires the verb sign on the signer, by name or for its domain", async () => {
  const signed = await change("one", "status", failed("x"));
  assert.equal(signed.code, 200, signed.message);
  assert.equal((await request("other", "other.org/x")).code, 201);
  const refused = await change("other", "status", {
    conditions: [{ type: "Failed", status: "True", reason: "x", message: "no" }],
  });
  assert.equal(refused.code, 403);
  assert.equal(
    refused.message,
    'certificatesigningrequests.certificates.k8s.io "other" is forbidden: user not permitted to sign requests with signerName "other.org/x"',
  );
});

test("a signing request to the API server's signer for system:masters is refused", async () => {
  const signer = "kubernetes.io/kube-apiserver-client";
  assert.equal((await request("second", signer, ["developers", "system:masters"])).code, 403);
  const refused = await request("root", signer, ["system:masters"]);
  assert.equal(refused.code, 403);
  assert.equal(
    refused.message,
    'certificatesigningrequests.certificates.k8s.io "root" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
  );
  assert.equal((await request("user", signer, ["developers"])).code, 201);
  assert.equal((await request("elsewhere", "example.com/one", ["system:masters"])).code, 201);
});
