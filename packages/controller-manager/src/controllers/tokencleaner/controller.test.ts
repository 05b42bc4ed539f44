import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aBootstrapToken } from "../../testing/bootstrap-tokens.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newTokenCleaner } from "./controller.ts";

test("deletes expired tokens only", async (t) => {
  const { client, ctx, clock, run } = newTestContext(t);
  const { metadata, ...token } = aBootstrapToken("ffffff", { expiration: "2000-01-01T00:00:00Z" });
  const elsewhere = { ...token, metadata: { ...metadata, namespace: "web" } };
  const inAnHour = formatTime(clock.now() + 3_600_000);
  client.put(
    secrets,
    aBootstrapToken("aaaaaa", { expiration: formatTime(clock.now() - 1000) }),
    aBootstrapToken("bbbbbb", { expiration: inAnHour }),
    aBootstrapToken("cccccc"),
    aBootstrapToken("dddddd", { expiration: "soon" }),
    { ...aBootstrapToken("eeeeee", { expiration: "2000-01-01T00:00:00Z" }), type: "Opaque" },
    elsewhere,
  );
  const left = () =>
    client
      .objects(secrets)
      .map(({ metadata }) => metadata.name?.slice(-6))
      .sort();
  await run(newTokenCleaner(ctx));
  assert.deepEqual(left(), ["bbbbbb", "cccccc", "eeeeee", "ffffff"]);
  assert.deepEqual(client.writes.map(({ sent }) => (sent as { preconditions?: { uid?: string } }).preconditions?.uid).sort(), [
    "uid-of-aaaaaa",
    "uid-of-dddddd",
  ]);
  await clock.advance(3_600_000);
  await settle(20);
  assert.deepEqual(left(), ["cccccc", "eeeeee", "ffffff"]);
});

for (const { what, answer } of [
  { what: "replaced", answer: (name: string) => conflict(secrets, name, "another uid") },
  { what: "deleted", answer: (name: string) => notFound(secrets, name) },
])
  test(`a token that was ${what} meanwhile is no failure`, async (t) => {
    const { client, ctx, clock, run } = newTestContext(t);
    client.react("delete", "secrets", ({ name }) => {
      throw answer(name);
    });
    client.put(secrets, aBootstrapToken("aaaaaa", { expiration: formatTime(clock.now() - 1000) }));
    await run(newTokenCleaner(ctx));
    await clock.advance(60_000);
    await settle(20);
    assert.equal(client.writes.length, 1);
  });
