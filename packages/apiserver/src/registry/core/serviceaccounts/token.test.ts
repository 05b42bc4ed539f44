import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { TokenRequest } from "@coxswain/apimachinery/objects/schema/kinds/authentication/v1";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { SubresourceCall } from "../../generic/resource.ts";
import { createToken } from "./token.ts";

const nowMs = Date.parse("2026-01-02T03:04:05Z");
const objects: Record<string, object> = {
  "serviceaccounts/robot": { metadata: { name: "robot", namespace: "web", uid: "account" } },
  "pods/p": { metadata: { name: "p", namespace: "web", uid: "pod" }, spec: { serviceAccountName: "robot" } },
  "pods/other": { metadata: { name: "other", namespace: "web", uid: "pod" }, spec: { serviceAccountName: "default" } },
  "secrets/s": { metadata: { name: "s", namespace: "web", uid: "secret" } },
  "secrets/new": { metadata: { name: "new", namespace: "web" } },
};

interface Request {
  readonly extendExpiration?: boolean;
  readonly issues?: boolean;
  readonly body?: object | undefined;
}

async function requested(spec: object, { extendExpiration = false, issues = true, ...given }: Request = {}) {
  let signed: Record<string, unknown> = {};
  const call = {
    ...{ name: "robot", namespace: "web", admit: async () => {}, body: "body" in given ? given.body : { spec } },
    services: {
      now: () => nowMs,
      tokenIssuer: issues
        ? {
            ...{ issuer: "https://api", defaultAudiences: ["api"], maxExpirationSeconds: 7200, extendExpiration },
            sign: async (claims: Record<string, unknown>) => {
              signed = claims;
              return "token";
            },
          }
        : undefined,
      store: (_group: string, resource: string) => ({
        get: async (_namespace: string, name: string) => ({ object: () => objects[`${resource}/${name}`] }),
      }),
    },
  } as unknown as SubresourceCall<TokenRequest>;
  const answer = (await createToken(call)) as { status?: object; spec?: object };
  return { claims: signed, answer };
}

const bound = (kind: string, name: string, uid?: string, apiVersion = "v1") => ({
  boundObjectRef: { kind, apiVersion, name, uid },
});

for (const { name, spec, want } of [
  { name: "a pod", spec: bound("Pod", "p", "pod"), want: { pod: { name: "p", uid: "pod" } } },
  { name: "a pod without a uid", spec: bound("Pod", "p"), want: { pod: { name: "p", uid: "pod" } } },
  { name: "a secret", spec: bound("Secret", "s", "secret"), want: { secret: { name: "s", uid: "secret" } } },
  { name: "nothing", spec: {}, want: {} },
]) {
  test(`a token bound to ${name} says so, and whose it is`, async () => {
    const { claims } = await requested(spec);
    const serviceaccount = { name: "robot", uid: "account" };
    assert.deepEqual(claims["kubernetes.io"], { namespace: "web", serviceaccount, ...want });
    hasFields(claims, { aud: ["api"], iss: "https://api", sub: "system:serviceaccount:web:robot" });
  });
}

const otherUid =
  "the UID in the bound object reference (earlier) does not match the UID in record. The object might have been deleted and then recreated";
for (const { name, spec, code, message } of [
  {
    name: "a pod of another uid",
    spec: bound("Pod", "p", "earlier"),
    code: 409,
    message: `Operation cannot be fulfilled on Pod "p": ${otherUid}`,
  },
  {
    name: "a secret of another uid",
    spec: bound("Secret", "s", "earlier"),
    code: 409,
    message: `Operation cannot be fulfilled on Secret "s": ${otherUid}`,
  },
  {
    name: "a pod of another account",
    spec: bound("Pod", "other", "pod"),
    code: 400,
    message: 'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
  },
  {
    name: "a config map",
    spec: bound("ConfigMap", "c"),
    code: 400,
    message: "cannot bind token to object of type /v1, Kind=ConfigMap",
  },
  {
    name: "a pod of another group",
    spec: bound("Pod", "p", "pod", "apps/v1"),
    code: 400,
    message: "cannot bind token to object of type apps/v1, Kind=Pod",
  },
  {
    name: "an object without a uid",
    spec: bound("Secret", "new"),
    code: 500,
    message: "Internal error occurred: Secret web/new of boundObjectRef has no uid",
  },
]) {
  test(`a token bound to ${name} is refused with ${code}`, async () => {
    await assert.rejects(requested(spec), (err) => {
      assert.ok(err instanceof StatusError);
      assert.deepEqual([err.code, err.message], [code, message]);
      return true;
    });
  });
}

test("a token without a request, and of a server without a key, is refused", async () => {
  await assert.rejects(requested({}, { body: undefined }), { code: 400, message: "not a TokenRequest object" });
  await assert.rejects(requested({}, { issues: false }), {
    code: 400,
    message: "the server does not issue service account tokens: it has no signing key",
  });
});

const now = nowMs / 1000;
const year = 365 * 24 * 3600;
interface Lifetime {
  readonly name: string;
  readonly spec: object;
  readonly extend?: boolean;
  readonly seconds: number;
  readonly signed: number;
  readonly warnafter?: number;
}

for (const { name, spec, extend = true, seconds, signed, warnafter } of [
  { name: "no time", spec: {}, seconds: 3600, signed: 3600 },
  { name: "more than the server allows", spec: { expirationSeconds: 99_999 }, seconds: 7200, signed: 7200 },
  {
    name: "the time of admission, for a pod and this server",
    spec: { expirationSeconds: 3607, ...bound("Pod", "p", "pod") },
    ...{ seconds: 3607, signed: year, warnafter: now + 3607 },
  },
  {
    name: "that, for another server",
    spec: { expirationSeconds: 3607, audiences: ["api", "vault"], ...bound("Pod", "p", "pod") },
    seconds: 3607,
    signed: 3607,
  },
  {
    name: "that, for a secret",
    spec: { expirationSeconds: 3607, ...bound("Secret", "s", "secret") },
    seconds: 3607,
    signed: 3607,
  },
  {
    name: "that, where lifetimes are not extended",
    spec: { expirationSeconds: 3607, ...bound("Pod", "p", "pod") },
    extend: false,
    seconds: 3607,
    signed: 3607,
  },
] as readonly Lifetime[]) {
  test(`a token that asks for ${name} is said to last ${seconds} s and lasts ${signed} s`, async () => {
    const { claims, answer } = await requested(spec, { extendExpiration: extend });
    assert.partialDeepStrictEqual(claims, { exp: now + signed, iat: now, nbf: now });
    assert.equal((claims["kubernetes.io"] as { warnafter?: number }).warnafter, warnafter);
    assert.partialDeepStrictEqual(answer, { spec: { expirationSeconds: seconds }, status: { token: "token" } });
    assert.equal(
      (answer.status as { expirationTimestamp: string }).expirationTimestamp,
      new Date(nowMs + seconds * 1000).toISOString().replace(".000", ""),
    );
  });
}

test("a token without audiences is for this server, one with others for those", async () => {
  for (const [audiences, aud] of [
    [undefined, ["api"]],
    [[], ["api"]],
    [
      ["a", "b"],
      ["a", "b"],
    ],
  ] as const) {
    const { claims, answer } = await requested({ ...(audiences && { audiences: [...audiences] }) });
    assert.deepEqual([claims["aud"], (answer.spec as { audiences: string[] }).audiences], [aud, aud]);
  }
});

for (const seconds of [0, 599, 2 ** 32 + 1]) {
  test(`a token for ${seconds} s is refused`, async () => {
    const isInvalid = (err: unknown): boolean => err instanceof StatusError && err.code === 422;
    await assert.rejects(requested({ expirationSeconds: seconds }), isInvalid);
  });
}
