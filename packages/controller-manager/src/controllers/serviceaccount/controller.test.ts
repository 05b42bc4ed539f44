import assert from "node:assert/strict";
import { test } from "node:test";
import { alreadyExists } from "@coxswain/apimachinery/objects/errors/status-error";
import { namespaces, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNamespace } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { namespaceTerminating } from "../../testing/terminating.ts";
import { newTestContext } from "../../testing/test-context.ts";
import { newServiceAccountController } from "./controller.ts";

test("gives each active namespace an account, and gives it back when someone deletes it", async (t) => {
  const { client, ctx, run } = newTestContext(t);
  client.put(namespaces, aNamespace({ name: "web" }), aNamespace({ name: "leaving", deletedAt: "2022-01-01T00:00:00Z" }));
  await run(newServiceAccountController(ctx));
  const names = () => client.objects(serviceAccounts).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  assert.deepEqual(names(), ["web/default"]);
  client.remove(serviceAccounts, "web/default");
  client.put(namespaces, aNamespace({ name: "new" }));
  await settle(30);
  assert.deepEqual(names().toSorted(), ["new/default", "web/default"]);
});

for (const { what, refusal } of [
  {
    what: "an account that is there though the cache does not show it",
    refusal: () => alreadyExists(serviceAccounts, "default"),
  },
  { what: "a namespace that has begun to end", refusal: () => namespaceTerminating(serviceAccounts, "default") },
])
  test(`${what} is no failure`, async (t) => {
    const { client, ctx, clock, run } = newTestContext(t);
    client.react("create", "serviceaccounts", () => {
      throw refusal();
    });
    client.put(namespaces, aNamespace({ name: "web" }));
    await run(newServiceAccountController(ctx));
    await clock.advance(60_000);
    await settle(30);
    assert.equal(client.writes.length, 1);
  });
