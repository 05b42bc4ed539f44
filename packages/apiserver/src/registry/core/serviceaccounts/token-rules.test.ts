import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { testRefusals } from "../../../testing/refusals.ts";
import { createToken, validateTokenRequest } from "./token.ts";

testRefusals<number | undefined>(
  (expirationSeconds) => validateTokenRequest({ metadata: {}, spec: { audiences: [], expirationSeconds } }),
  [
    { name: "ten minutes", input: 600, want: [] },
    { name: "an age", input: 2 ** 32, want: [] },
    {
      name: "less than ten minutes",
      input: 599,
      want: ["spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"],
    },
    {
      name: "more than an age",
      input: 2 ** 32 + 1,
      want: ["spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"],
    },
  ],
);

test("a token for a pod and an account that another server has just created is not refused: both are read from etcd", async () => {
  const objects: Record<string, object> = {
    serviceaccounts: { metadata: { name: "robot", namespace: "default", uid: "u1" } },
    pods: { metadata: { name: "web", uid: "u2" }, spec: { serviceAccountName: "robot" } },
  };
  const store = (_group: string, resource: string) => ({
    async get(_namespace: string, name: string, { minimumRevision }: { minimumRevision?: number }) {
      if (minimumRevision !== undefined) throw notFound({ group: "", resource }, name); // the cache does not have it yet
      return { object: () => objects[resource] };
    },
  });
  const issuer = { defaultAudiences: ["api"], issuer: "https://here", sign: async () => "signed" };
  const spec = { boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "web" } };
  const made = await createToken({
    body: { metadata: {}, spec },
    services: { store, tokenIssuer: issuer, now: () => 0 },
    admit: async () => {},
    ...{ namespace: "default", name: "robot" },
  } as never);
  assert.partialDeepStrictEqual(made, { status: { token: "signed" } });
});
