import assert from "node:assert/strict";
import { test } from "node:test";
import { namespaces, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aNamespace } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
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
