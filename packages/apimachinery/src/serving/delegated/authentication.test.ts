import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "../../objects/errors/status-error.ts";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { newMetricsRegistry } from "../../process/metrics/registry.ts";
import { newFakeClient } from "../../testing/fake-client.ts";
import type { Exchange } from "../exchange.ts";
import { delegatedAuthentication } from "./authentication.ts";

const known = { authenticated: true, user: { username: "ann", uid: "u1", groups: ["a"], extra: { scope: ["s"] } } };

/** Authentication by an API server that answers every review alike. */
function reviewing({ anonymous = false, isAlone = false } = {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const server: { answer: object | Error } = { answer: known };
  const asked: unknown[] = [];
  client.react("create", "tokenreviews", ({ sent }) => {
    asked.push((sent as { spec: unknown }).spec);
    if (server.answer instanceof Error) throw server.answer;
    return { status: server.answer };
  });
  const authenticate = delegatedAuthentication({
    trust: { clientCa: () => undefined, frontProxy: () => undefined },
    client: isAlone ? undefined : client,
    ...{ tokenTtlMs: 10_000, anonymous, clock, metrics: newMetricsRegistry() },
  });
  const ask = (headers: Record<string, string>, upgrade?: object) =>
    authenticate({ headers, rawHeaders: [], upgrade } as unknown as Exchange); // cast: all that is read
  return { clock, server, ask, asked: () => asked.splice(0) };
}
const bearing = (token: string) => ({ authorization: `Bearer ${token}` });

test("a token's user is whom the API server says, in all of its groups, and authenticated", async () => {
  const { ask, asked } = reviewing();
  assert.deepEqual((await ask(bearing("t")))?.user, {
    name: "ann",
    uid: "u1",
    groups: ["a", "system:authenticated"],
    extra: { scope: ["s"] },
  });
  assert.deepEqual(asked(), [{ token: "t" }]);
});

test("a review with nothing but a yes is a user without name and groups", async () => {
  const { ask, server } = reviewing();
  server.answer = { authenticated: true };
  assert.deepEqual((await ask(bearing("t")))?.user, { name: "", uid: "", groups: ["system:authenticated"] });
});

for (const [answer, message] of [
  [{ authenticated: false }, /^Error: invalid bearer token$/],
  [{}, /^Error: invalid bearer token$/],
  [{ authenticated: false, error: "the token has expired" }, /^Error: the token has expired$/],
  [forbidden({ group: "authentication.k8s.io", resource: "tokenreviews" }, "", "no right"), /no right$/],
] as const) {
  test(`a token is refused when its review says ${message.source}`, async () => {
    const { ask, server } = reviewing({ anonymous: true });
    server.answer = answer;
    await assert.rejects(ask(bearing("t")), message);
  });
}

test("an unknown token is remembered as long as a known one, a failed review is not", async () => {
  const { ask, asked, server, clock } = reviewing();
  server.answer = { authenticated: false };
  await assert.rejects(ask(bearing("t")));
  server.answer = known;
  await clock.advance(9_999);
  await assert.rejects(ask(bearing("t")));
  assert.equal(asked().length, 1);
  await clock.advance(1);
  assert.equal((await ask(bearing("t")))?.user.name, "ann");
  server.answer = forbidden({ group: "", resource: "tokenreviews" }, "", "no right");
  await assert.rejects(ask(bearing("other")));
  server.answer = known;
  assert.equal((await ask(bearing("other")))?.user.name, "ann");
});

test("a request without credentials is nobody's, or anonymous", async () => {
  assert.equal(await reviewing().ask({}), undefined);
  assert.deepEqual((await reviewing({ anonymous: true }).ask({}))?.user, {
    name: "system:anonymous",
    groups: ["system:unauthenticated"],
  });
});

test("the token of a WebSocket is one, too", async () => {
  const { ask, asked } = reviewing();
  const protocol = `base64url.bearer.authorization.k8s.io.${Buffer.from("t").toString("base64url")}`;
  const found = await ask({ upgrade: "websocket", "sec-websocket-protocol": `${protocol}, v4.channel.k8s.io` }, {});
  assert.deepEqual([found?.user.name, asked()], ["ann", [{ token: "t" }]]);
});

test("without an API server tokens are nobody's", async () => {
  const { ask, asked } = reviewing({ isAlone: true });
  assert.deepEqual([await ask(bearing("t")), asked()], [undefined, []]);
});
