import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newAdmissionChain } from "./chain.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "./plugin.ts";

function aChain() {
  const called: string[] = [];
  const refusing = new Set<string>();
  const step = (name: string) => async () => {
    called.push(name);
    if (refusing.has(name)) throw new Error(`${name} refuses`);
  };
  const plugins: AdmissionPlugin[] = [
    { name: "First", handles: () => true, admit: step("admit 1"), validate: step("validate 1") },
    { name: "Updates", handles: (operation) => operation === "UPDATE", admit: step("admit 2"), validate: step("validate 2") },
    { name: "Looks", handles: () => true, validate: step("validate 3") },
    { name: "Changes", handles: () => true, admit: step("admit 4") },
  ];
  const registry = newMetricsRegistry();
  const chain = newAdmissionChain(plugins, registry);
  const counts = async (of = "controller"): Promise<string[]> => {
    const name = `apiserver_admission_${of}_admission_duration_seconds_count`;
    const lines = (await registry.render()).split("\n").filter((line) => line.startsWith(name));
    return lines.map((line) => line.slice(name.length).replaceAll(/[{}"]|\w+=/g, ""));
  };
  const attributes = (operation: string, resource = "pods", group = "") =>
    ({ operation, resource: { group, version: "v1", resource } }) as AdmissionAttributes;
  return { chain, called, refusing, counts, attributes };
}

test("plugins are called in their order, for the operations that they handle, each observed", async () => {
  const { chain, called, counts, attributes } = aChain();
  for (const operation of ["CREATE", "UPDATE", "CREATE"]) {
    await chain.mutate(attributes(operation));
    await chain.validate(attributes(operation));
    called.push(".");
  }
  const created = ["admit 1", "admit 4", "validate 1", "validate 3", "."];
  const updated = ["admit 1", "admit 2", "admit 4", "validate 1", "validate 2", "validate 3", "."];
  assert.deepEqual(called, [...created, ...updated, ...created]);
  assert.deepEqual(
    (await counts()).sort(),
    [
      ...["First", "Changes"].flatMap((name) => [`${name},admit,CREATE,false 2`, `${name},admit,UPDATE,false 1`]),
      ...["First", "Looks"].flatMap((name) => [`${name},validate,CREATE,false 2`, `${name},validate,UPDATE,false 1`]),
      "Updates,admit,UPDATE,false 1",
      "Updates,validate,UPDATE,false 1",
    ].sort(),
  );
});

test("the first refusal ends the chain and is observed as one; the next request is checked again", async () => {
  const { chain, called, refusing, counts, attributes } = aChain();
  refusing.add("admit 1").add("validate 3");
  await assert.rejects(chain.mutate(attributes("CREATE")), /admit 1 refuses/);
  await assert.rejects(chain.validate(attributes("CREATE")), /validate 3 refuses/);
  assert.deepEqual(called, ["admit 1", "validate 1", "validate 3"]);
  refusing.clear();
  await chain.mutate(attributes("CREATE"));
  assert.deepEqual((await counts()).sort(), [
    "Changes,admit,CREATE,false 1",
    "First,admit,CREATE,false 1",
    "First,admit,CREATE,true 1",
    "First,validate,CREATE,false 1",
    "Looks,validate,CREATE,true 1",
  ]);
  assert.deepEqual((await counts("step")).sort(), ["admit,CREATE,false 1", "admit,CREATE,true 1", "validate,CREATE,true 1"]);
});

test("a plugin is called for its resources alone, in all their subresources, and observed for the others too", async () => {
  const called: string[] = [];
  const admit = async ({ resource }: AdmissionAttributes): Promise<void> => void called.push(resource.resource);
  const resources = ["pods", "ingresses.networking.k8s.io"];
  const registry = newMetricsRegistry();
  const chain = newAdmissionChain([{ name: "Some", handles: () => true, resources, admit }], registry);
  const of = (group: string, resource: string) =>
    ({ operation: "CREATE", subresource: "status", resource: { group, version: "v1", resource } }) as AdmissionAttributes;
  const requested = [of("", "pods"), of("metrics.k8s.io", "pods"), of("", "ingresses"), of("networking.k8s.io", "ingresses")];
  for (const attributes of requested) await chain.mutate(attributes);
  assert.deepEqual(called, ["pods", "ingresses"]);
  assert.match(await registry.render(), /controller_admission_duration_seconds_count\{name="Some",.*\} 4\n/);
});

test("a webhook's request for reinvocation runs the mutating plugins once more, and a refusal there refuses the request", async () => {
  const called: string[] = [];
  const admit =
    (name: string, asks = false) =>
    async (attributes: AdmissionAttributes) => {
      called.push(`${name} ${attributes.round ?? 0}`);
      if (asks) attributes.wantsAnotherRound = true;
    };
  const validate = async () => void called.push("validate");
  const plugins = [
    { name: "First", handles: () => true, admit: admit("first"), validate },
    { name: "Webhook", handles: () => true, admit: admit("webhook", true) },
  ];
  const chain = newAdmissionChain(plugins, newMetricsRegistry());
  for (const operation of ["CREATE", "UPDATE"]) {
    const attributes = { operation, resource: { group: "", version: "v1", resource: "pods" } } as AdmissionAttributes;
    await chain.mutate(attributes);
    await chain.validate(attributes);
    assert.deepEqual(called.splice(0), ["first 0", "webhook 0", "first 1", "webhook 1", "validate"], operation);
  }
});

test("plugins and steps are observed in seconds", async (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => {
    now += 2000;
    return now;
  });
  const registry = newMetricsRegistry();
  const chain = newAdmissionChain([{ name: "Slow", handles: () => true, async validate() {} }], registry);
  await chain.validate({ operation: "CREATE", resource: { group: "", version: "v1", resource: "pods" } } as AdmissionAttributes);
  const text = await registry.render();
  assert.match(text, /apiserver_admission_controller_admission_duration_seconds_sum\{name="Slow",.*\} 2\n/);
  assert.match(text, /apiserver_admission_step_admission_duration_seconds_sum\{type="validate",.*\} 6\n/);
});

test("a plugin that refuses after it has passed is observed as refusing", async () => {
  const { chain, refusing, counts, attributes } = aChain();
  await chain.mutate(attributes("CREATE"));
  refusing.add("admit 1");
  await assert.rejects(chain.mutate(attributes("CREATE")));
  assert.deepEqual((await counts()).filter((line) => line.startsWith("First")).sort(), [
    "First,admit,CREATE,false 1",
    "First,admit,CREATE,true 1",
  ]);
});
