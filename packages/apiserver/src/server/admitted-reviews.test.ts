import assert from "node:assert/strict";
import { after, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startHookServer } from "../testing/start-hook-server.ts";
import { startTestServer } from "../testing/start-test-server.ts";

/** Reviews are not stored, but admitted like objects. */

const server = await startTestServer({ after });
const hook = await startHookServer();
after(() => hook.stop());
const resourceAttributes = { verb: "get", resource: "pods", namespace: "absent" };
const authorization = "/apis/authorization.k8s.io/v1";
const reviews = [
  { kind: "SubjectAccessReview", path: `${authorization}/subjectaccessreviews`, spec: { user: "jane", resourceAttributes } },
  { kind: "SelfSubjectAccessReview", path: `${authorization}/selfsubjectaccessreviews`, spec: { resourceAttributes } },
  { kind: "SelfSubjectRulesReview", path: `${authorization}/selfsubjectrulesreviews`, spec: { namespace: "default" } },
  {
    kind: "LocalSubjectAccessReview",
    path: `${authorization}/namespaces/absent/localsubjectaccessreviews`,
    spec: { user: "jane", resourceAttributes },
  },
  { kind: "TokenReview", path: "/apis/authentication.k8s.io/v1/tokenreviews", spec: { token: "none" } },
];

for (const { kind, path, spec } of reviews) {
  test(`${kind}: without a webhook it is answered, for a namespace that does not exist, too`, async () => {
    assert.equal((await server.request("POST", path, { spec })).code, 201);
  });
}

test("a validating webhook sees each review, and may refuse it", async () => {
  hook.answers.set("/refuse", ({ kind }) => ({ allowed: false, status: { message: `no ${kind.kind}` } }));
  const rule = { apiVersions: ["v1"], operations: ["CREATE"], resources: ["*"], scope: "*" };
  const webhook = {
    name: "refuse.example.com",
    clientConfig: { url: `${hook.url}/refuse`, caBundle: hook.caBundle },
    rules: ["authorization.k8s.io", "authentication.k8s.io"].map((group) => ({ ...rule, apiGroups: [group] })),
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
  };
  const configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const created = await server.request("POST", configurations, { metadata: { name: "refuse" }, webhooks: [webhook] });
  assert.equal(created.code, 201, created.text);
  for (const { kind, path, spec } of reviews) {
    const refused = await waitFor(
      async () => {
        const answer = await server.request("POST", path, { spec });
        return answer.code !== 201 && answer;
      },
      { what: `the webhook to be called for ${kind}` },
    );
    assert.equal(refused.code, 400, refused.text);
    assert.equal(refused.body.message, `admission webhook "refuse.example.com" denied the request: no ${kind}`);
    const called = hook.requested.findLast(({ request }) => request.kind.kind === kind);
    assert.deepEqual(called?.request.object.spec, spec);
  }
});
