import assert from "node:assert/strict";
import { test } from "node:test";
import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import type { TokenRequestOptions } from "../../pod/pod-objects.ts";
import { aNodePod } from "../../testing/builders.ts";
import { tokenAttributes } from "./csi-secrets.ts";

const attribute = "csi.storage.k8s.io/serviceAccount.tokens";

function asking(tokenRequests: NonNullable<CSIDriver["spec"]["tokenRequests"]> | undefined, serviceAccountName?: string) {
  const requested: TokenRequestOptions[] = [];
  const objects = {
    async serviceAccountToken(request: TokenRequestOptions) {
      requested.push(request);
      return { token: `for ${request.audience}`, expirationTimestamp: "2030-01-01T00:00:00Z" };
    },
  };
  const pod = aNodePod({ ...(serviceAccountName !== undefined && { serviceAccountName }) });
  const driver = { metadata: { name: "d" }, spec: { ...(tokenRequests && { tokenRequests }) } } as CSIDriver;
  return { requested, attributes: () => tokenAttributes(objects, pod, driver) };
}

test("a driver gets a token for each audience it lists, of the pod's service account and for an hour unless it says otherwise", async () => {
  const { requested, attributes } = asking([{ audience: "vault" }, { audience: "", expirationSeconds: 600 }], "robot");
  const tokens: Record<string, { token: string }> = JSON.parse((await attributes())[attribute] ?? "{}");
  assert.deepEqual(
    Object.entries(tokens).map(([audience, { token }]) => [audience, token]),
    [
      ["vault", "for vault"],
      ["", "for "],
    ],
  );
  const request = { namespace: "default", serviceAccount: "robot", pod: { name: "web", uid: "uid-1" } };
  assert.deepEqual(requested, [
    { ...request, audience: "vault", expirationSeconds: 3600 },
    { ...request, audience: "", expirationSeconds: 600 },
  ]);
});

test("a pod without a service account uses the default one; a driver without token requests gets no attribute", async () => {
  const { requested, attributes } = asking([{ audience: "vault" }]);
  await attributes();
  assert.equal(requested[0]?.serviceAccount, "default");
  assert.deepEqual(await asking(undefined).attributes(), {});
});
