import assert from "node:assert/strict";
import { test } from "node:test";
import type { SubjectAccessReview } from "@coxswain/apimachinery/objects/schema/kinds/authorization/v1";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { aCertificateRequest, type RequestedCertificate } from "../../testing/certificate-requests.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newCsrApprovingController } from "./controller.ts";

type Refused = { allowed: boolean };

/** A context whose API server grants these subresources to every user. */
function world(t: Parameters<typeof newTestContext>[0], granted: readonly string[]) {
  const context = newTestContext(t);
  const requested: string[] = [];
  const reviews: SubjectAccessReview["spec"][] = [];
  context.client.react("create", "subjectaccessreviews", ({ sent }) => {
    const { spec } = sent as SubjectAccessReview;
    reviews.push(spec);
    const subresource = spec.resourceAttributes?.subresource ?? "";
    requested.push(`${spec.user} ${spec.groups?.join()} ${spec.resourceAttributes?.verb} ${subresource}`);
    const status: Refused = { allowed: granted.includes(subresource) };
    return { ...(sent as SubjectAccessReview), status };
  });
  const conditions = () =>
    context.client.object<CertificateSigningRequest>(certificateSigningRequests, "csr-1")?.status?.conditions;
  return { ...context, requested, reviews, conditions };
}

const approved = (message: string) => [{ type: "Approved", status: "True", reason: "AutoApproved", message }];

for (const { name, csr, granted, want, reviews } of [
  {
    name: "a joining node's certificate is approved when its requester may get those of nodes",
    csr: {},
    granted: ["nodeclient"],
    want: approved("Auto approving kubelet client certificate after SubjectAccessReview."),
    reviews: ["system:bootstrap:abcdef system:bootstrappers create nodeclient"],
  },
  {
    name: "a node's own renewal is approved when it may renew",
    csr: { username: "system:node:n1" },
    granted: ["selfnodeclient"],
    want: approved("Auto approving self kubelet client certificate after SubjectAccessReview."),
    reviews: ["system:node:n1 system:bootstrappers create selfnodeclient"],
  },
  {
    name: "a node that may not renew is approved as any requester that may get nodes' certificates",
    csr: { username: "system:node:n1" },
    granted: ["nodeclient"],
    want: approved("Auto approving kubelet client certificate after SubjectAccessReview."),
    reviews: [
      "system:node:n1 system:bootstrappers create selfnodeclient",
      "system:node:n1 system:bootstrappers create nodeclient",
    ],
  },
  {
    name: "a node that may only renew gets no other node's certificate",
    csr: { username: "system:node:n2" },
    granted: ["selfnodeclient"],
    want: [],
    reviews: ["system:node:n2 system:bootstrappers create nodeclient"],
  },
  {
    name: "serving certificates are left to people",
    csr: { signer: "kubernetes.io/kubelet-serving" },
    granted: ["nodeclient"],
    want: [],
    reviews: [],
  },
  {
    name: "a request that is not a node's is left for manual approval",
    csr: { commonName: "jane" },
    granted: ["nodeclient"],
    want: [],
    reviews: [],
  },
  {
    name: "a group besides that of nodes is left to people",
    csr: { organizations: ["system:nodes", "system:masters"] },
    granted: ["nodeclient"],
    want: [],
    reviews: [],
  },
  { name: "names of hosts are left to people", csr: { dnsNames: ["n1"] }, granted: ["nodeclient"], want: [], reviews: [] },
  {
    name: "other usages are left to people",
    csr: { usages: ["client auth", "server auth"] },
    granted: ["nodeclient"],
    want: [],
    reviews: [],
  },
  {
    name: "an approved request is not approved twice",
    csr: { conditions: [{ type: "Approved" }] },
    granted: ["nodeclient"],
    want: [{ type: "Approved", status: "True" }],
    reviews: [],
  },
  {
    name: "a denied request stays denied",
    csr: { conditions: [{ type: "Denied" }] },
    granted: ["nodeclient"],
    want: [{ type: "Denied", status: "True" }],
    reviews: [],
  },
] as { name: string; csr: RequestedCertificate; granted: string[]; want: object[]; reviews: string[] }[]) {
  test(name, async (t) => {
    const { ctx, client, run, requested, conditions } = world(t, granted);
    // The second request takes as many steps as an approval of the first one, and begins after it.
    const last = await aCertificateRequest({ name: "csr-2", username: "last" });
    client.put(certificateSigningRequests, await aCertificateRequest(csr), last);
    await run(newCsrApprovingController(ctx));
    const lastReview = "last system:bootstrappers create nodeclient";
    await waitFor(() => requested.length === reviews.length + 1 && requested.includes(lastReview));
    await settle(20);
    assert.deepEqual(
      requested.filter((review) => review !== lastReview),
      reviews,
    );
    assert.deepEqual(conditions(), want);
  });
}

test("a request that was refused is approved later, when its requester got the permission", async (t) => {
  const granted: string[] = [];
  const { ctx, client, run, requested, conditions, clock } = world(t, granted);
  client.put(certificateSigningRequests, await aCertificateRequest());
  await run(newCsrApprovingController(ctx));
  await waitFor(() => requested.length === 1);
  await settle(20);
  granted.push("nodeclient");
  await clock.advance(200);
  await waitFor(() => conditions()?.[0]?.type === "Approved");
});

test("a request of the name of an approved one does not inherit its waits", async (t) => {
  const granted: string[] = [];
  const { ctx, client, run, requested, conditions, clock } = world(t, granted);
  client.put(certificateSigningRequests, await aCertificateRequest());
  await run(newCsrApprovingController(ctx));
  for (let reviews = 1; reviews <= 4; reviews++) {
    await waitFor(() => requested.length === reviews);
    await settle(20);
    await clock.advance(200 * 2 ** (reviews - 1));
  }
  await waitFor(() => requested.length === 5);
  await settle(20);
  granted.push("nodeclient");
  await clock.advance(200 * 2 ** 4);
  await waitFor(() => conditions()?.[0]?.type === "Approved");
  granted.length = 0;
  client.remove(certificateSigningRequests, "csr-1");
  await settle(20);
  requested.length = 0;
  client.put(certificateSigningRequests, await aCertificateRequest());
  await waitFor(() => requested.length === 1);
  await settle(20);
  await clock.advance(200);
  await waitFor(() => requested.length === 2);
});

test("the review is about the requester with all that is known of them, and the subresource of requests", async (t) => {
  const { ctx, client, run, reviews, conditions } = world(t, ["nodeclient"]);
  const csr = await aCertificateRequest();
  client.put(certificateSigningRequests, { ...csr, spec: { ...csr.spec, uid: "u-1", extra: { scope: ["a", "b"] } } });
  await run(newCsrApprovingController(ctx));
  await waitFor(() => conditions()?.[0]?.type === "Approved");
  assert.deepEqual(reviews, [
    {
      user: "system:bootstrap:abcdef",
      uid: "u-1",
      groups: ["system:bootstrappers"],
      extra: { scope: ["a", "b"] },
      resourceAttributes: {
        group: "certificates.k8s.io",
        resource: "certificatesigningrequests",
        subresource: "nodeclient",
        verb: "create",
      },
    },
  ]);
});

test("a request of the name of one that was refused and deleted does not inherit its waits", async (t) => {
  const { ctx, client, run, requested, clock } = world(t, []);
  client.put(certificateSigningRequests, await aCertificateRequest());
  await run(newCsrApprovingController(ctx));
  for (let reviews = 1; reviews <= 4; reviews++) {
    await waitFor(() => requested.length === reviews);
    await settle(20);
    await clock.advance(200 * 2 ** (reviews - 1));
  }
  await waitFor(() => requested.length === 5);
  await settle(20);
  client.remove(certificateSigningRequests, "csr-1");
  await clock.advance(200 * 2 ** 4);
  requested.length = 0;
  client.put(certificateSigningRequests, await aCertificateRequest());
  await waitFor(() => requested.length === 1);
  await settle(20);
  await clock.advance(200);
  await waitFor(() => requested.length === 2);
});
