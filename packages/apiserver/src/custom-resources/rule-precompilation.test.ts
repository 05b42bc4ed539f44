import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { withPrecompiledRules } from "./rule-precompilation.ts";

const resource = { group: "apiextensions.k8s.io", resource: "customresourcedefinitions" };
const definition = { metadata: {}, spec: { versions: [{ name: "v1", schema: { openAPIV3Schema: { type: "object" } } }] } };

for (const attributes of [
  { resource, subresource: "", object: definition },
  { resource, subresource: "status", object: definition },
  { resource, subresource: "", object: undefined },
  { resource: { group: "apps", resource: "deployments" }, subresource: "", object: {} },
]) {
  const what = `${attributes.resource.resource} ${attributes.subresource} ${attributes.object ? "" : "without an object"}`.trim();

  test(`mutating admission is over, and nothing follows it meanwhile: ${what}`, async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let isOver = false;
    const chain = withPrecompiledRules(new Turns(), { mutate: (_: typeof attributes) => promise });
    const mutated = chain.mutate(attributes).then(() => {
      isOver = true;
    });
    await new Promise((next) => setImmediate(next));
    assert.equal(isOver, false);
    resolve();
    await mutated;
  });

  test(`a refusal by mutating admission is passed on: ${what}`, async () => {
    const chain = withPrecompiledRules(new Turns(), { mutate: (_: typeof attributes) => Promise.reject(new Error("refused")) });
    await assert.rejects(chain.mutate(attributes), /^Error: refused$/);
  });
}

test("the rules that are compiled are those of the definition as mutating admission left it", async () => {
  const attributes = { resource, subresource: "", object: undefined as object | undefined };
  let read = false;
  const changed = {
    metadata: {},
    get spec() {
      read = true;
      return definition.spec;
    },
  };
  const chain = withPrecompiledRules(new Turns(), {
    async mutate(written: typeof attributes) {
      written.object = changed;
    },
  });
  await chain.mutate(attributes);
  assert.ok(read);
});
