import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { bootstrapToken } from "./bootstrap-token.ts";

const base64 = (data: Record<string, string>) =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]));
const good = { "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true" };

for (const { name, data = {}, deletionTimestamp, type = "bootstrap.kubernetes.io/token", want } of [
  { name: "whose secret is there", want: ["system:bootstrappers"] },
  { name: "whose secret is being deleted", deletionTimestamp: "2022-01-01T00:00:00Z", want: undefined },
  {
    name: "with two groups, one of them twice",
    data: { "auth-extra-groups": "system:bootstrappers:a,system:bootstrappers:b,system:bootstrappers:a" },
    want: ["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b"],
  },
  {
    name: "whose second group is not for bootstrapping",
    data: { "auth-extra-groups": "system:bootstrappers:a,system:masters" },
    want: undefined,
  },
  {
    name: "with two groups out of order",
    data: { "auth-extra-groups": "system:bootstrappers:b,system:bootstrappers:a" },
    want: ["system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b"],
  },
  { name: "whose secret is of another type", type: "Opaque", want: undefined },
  { name: "whose secret is another's", data: { "token-id": "ghijkl" }, want: undefined },
  { name: "whose secret is another", data: { "token-secret": "0123456789abcdee" }, want: undefined },
  { name: "whose secret has none", data: { "token-secret": "" }, want: undefined },
  { name: "that may not be used to authenticate", data: { "usage-bootstrap-authentication": "false" }, want: undefined },
  { name: "that nothing says may authenticate", data: { "usage-bootstrap-authentication": "" }, want: undefined },
  { name: "whose end is no time", data: { expiration: "soon" }, want: undefined },
  { name: "whose end is to come", data: { expiration: "2022-01-01T00:00:01Z" }, want: ["system:bootstrappers"] },
  { name: "whose end is now", data: { expiration: "2022-01-01T00:00:00Z" }, want: undefined },
  { name: "whose end is past", data: { expiration: "2021-12-31T23:59:59Z" }, want: undefined },
  {
    name: "whose first group is not for bootstrapping",
    data: { "auth-extra-groups": "a,system:bootstrappers:b" },
    want: undefined,
  },
  { name: "whose secret begins alike", data: { "token-secret": "0123456789abcdef0" }, want: undefined },
] as { name: string; data?: Record<string, string>; deletionTimestamp?: string; type?: string; want: string[] | undefined }[]) {
  test(`a bootstrap token ${name} is ${want === undefined ? "not accepted" : `in ${want.length} groups`}`, async () => {
    const secret = {
      metadata: { name: "bootstrap-token-abcdef", ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
      type,
      data: base64({ ...good, ...data }),
    };
    const authenticate = bootstrapToken({ get: async () => secret }, newFakeClock());
    const result = await authenticate("abcdef.0123456789abcdef", undefined);
    assert.deepEqual(result?.user.groups, want);
  });
}

test("a bootstrap token expires while it is in use, and is good again when its end is moved", async () => {
  const clock = newFakeClock();
  const endsIn = (ms: number) => ({ expiration: new Date(clock.now() + ms).toISOString().replace(/\.\d+Z$/, "Z") });
  let data = { ...good, ...endsIn(60_000) };
  const get = async () => ({ metadata: {}, type: "bootstrap.kubernetes.io/token", data: base64(data) }) as never;
  const authenticate = bootstrapToken({ get }, clock);
  const isGood = async () => (await authenticate("abcdef.0123456789abcdef", undefined)) !== undefined;
  assert.equal(await isGood(), true);
  await clock.advance(61_000);
  assert.equal(await isGood(), false);
  data = { ...good, ...endsIn(60_000) };
  assert.equal(await isGood(), true);
});

test("a bootstrap token is looked for under its id in kube-system, and other tokens are not looked for", async () => {
  const requested: unknown[] = [];
  const get = async (...of: unknown[]): Promise<undefined> => void requested.push(of);
  const authenticate = bootstrapToken({ get }, newFakeClock());
  const good = "abcdef.0123456789abcdef";
  for (const token of [good, `${good}0`, `0${good}`, good.toUpperCase(), good.replace(".", ""), good.slice(1)]) {
    assert.equal(await authenticate(token, undefined), undefined, token);
  }
  assert.deepEqual(requested, [["secrets", "kube-system", "bootstrap-token-abcdef", false]]);
});
