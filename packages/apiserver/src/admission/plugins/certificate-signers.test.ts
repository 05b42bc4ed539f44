import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { certificateApproval, certificateSigning, certificateSubjectRestriction } from "./certificates.ts";

const approved = { type: "Approved", status: "True" };
const aRequest = (status: object, signerName = "example.com/one") => ({ metadata: { name: "r" }, spec: { signerName }, status });

/** Performs a write with an authorizer that allows these signers; returns the authorization queries and the rejection. */
async function writing(
  plugin: (ctx: PluginContext) => AdmissionPlugin,
  {
    subresource,
    before = {},
    next = {},
    may = [],
    resource = "certificatesigningrequests",
    group = "certificates.k8s.io",
  }: {
    subresource: string;
    before?: object;
    next?: object;
    may?: readonly string[];
    resource?: string;
    group?: string;
  },
) {
  const requested: string[] = [];
  const authorize = async ({ verb, name }: { verb: string; name: string }) => {
    requested.push(`${verb} ${name}`);
    return { decision: may.includes(name) ? "allow" : name.endsWith("*") ? "no-opinion" : "deny" };
  };
  const attributes = {
    resource: { group, resource },
    subresource,
    name: "r",
    user: { name: "jane", groups: [] },
    oldObject: aRequest(before),
    object: aRequest(next, "example.com/other"),
  };
  const answer = plugin({ authorize } as unknown as PluginContext).validate?.(attributes as unknown as AdmissionAttributes);
  const refusal = await Promise.resolve(answer).then(
    () => "",
    (err: Error) => err.message,
  );
  return { requested, refusal };
}

const signing = ["sign example.com/one", "sign example.com/*"];
for (const { name, before, next, want } of [
  { name: "nothing", before: { conditions: [approved] }, next: { conditions: [approved] }, want: [] },
  { name: "the certificate", before: {}, next: { certificate: "x" }, want: signing },
  { name: "the conditions", before: { conditions: [approved] }, next: { conditions: [] }, want: signing },
  { name: "the certificate for none", before: { certificate: "x" }, next: {}, want: signing },
]) {
  test(`a status that changes ${name} ${want.length === 0 ? "asks for no right" : "is for signers of what was requested first"}`, async () => {
    const { requested, refusal } = await writing(certificateSigning, { subresource: "status", before, next });
    assert.deepEqual(requested, want);
    assert.equal(refusal.endsWith('user not permitted to sign requests with signerName "example.com/one"'), want.length > 0);
  });
}

test("the right to a signer, or to its whole domain, will do", async () => {
  for (const may of ["example.com/one", "example.com/*"]) {
    const sign = await writing(certificateSigning, { subresource: "status", next: { certificate: "x" }, may: [may] });
    const approve = await writing(certificateApproval, { subresource: "approval", may: [may] });
    assert.deepEqual([sign.refusal, approve.refusal], ["", ""], may);
  }
  const other = await writing(certificateApproval, { subresource: "approval", may: ["example.com/other"] });
  assert.match(other.refusal, /user not permitted to approve requests with signerName "example.com\/one"$/);
});

test("each plugin looks at its own part of requests alone", async () => {
  const changed = { next: { certificate: "x" } };
  for (const [plugin, more] of [
    [certificateSigning, { subresource: "approval" }],
    [certificateSigning, { subresource: "status", resource: "others" }],
    [certificateSigning, { subresource: "status", group: "example.com" }],
    [certificateApproval, { subresource: "status" }],
    [certificateApproval, { subresource: "approval", resource: "others" }],
  ] as const)
    assert.deepEqual(await writing(plugin, { ...changed, ...more }), { requested: [], refusal: "" });
});

test("a request of the client signer that cannot be read is refused, one of another signer is not read", async () => {
  const create = async (signerName: string, request?: string) =>
    certificateSubjectRestriction().validate?.({
      ...{ operation: "CREATE", subresource: "", name: "r" },
      resource: { group: "certificates.k8s.io", version: "v1", resource: "certificatesigningrequests" },
      object: { metadata: { name: "r" }, spec: { signerName, ...(request !== undefined && { request }) } },
    } as unknown as AdmissionAttributes<never>);
  for (const request of [undefined, "", Buffer.from("none").toString("base64")])
    await assert.rejects(create("kubernetes.io/kube-apiserver-client", request), {
      code: 403,
      message: /^certificatesigningrequests.certificates.k8s.io "r" is forbidden: failed to parse CSR: ./,
    });
  await create("kubernetes.io/kubelet-serving", "bm9uZQ==");
});
