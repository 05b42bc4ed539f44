import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { customResourceDefinitions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { Storage } from "../storage/storage.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import { renameOnly } from "./conversion.ts";
import { newCustomResources } from "./custom-resources.ts";
import type { CustomResourceDefinition } from "./definitions.ts";

/** @param versions name of each version; one that begins with `-` is not served */
const aDefinition = (plural: string, ...versions: string[]): CustomResourceDefinition =>
  ({
    metadata: { name: `${plural}.example.com` },
    spec: {
      ...{ group: "example.com", scope: "Namespaced", names: { plural, kind: plural } },
      versions: versions.map((name, i) => ({ name: name.replace("-", ""), served: !name.startsWith("-"), storage: i === 0 })),
    },
  }) as CustomResourceDefinition;

/** Custom resources over a fake client, and the group versions that they announce, in order: `+v1`, `-v1`. */
async function following(t: TestContext) {
  const client = newFakeClient();
  const clock = newFakeClock();
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const announced: string[] = [];
  newCustomResources({
    ...{ client, informers, clock, log: discardLogger, turns: new Turns(), memory: unlimitedEntries(), storeOptions: {} },
    catalogue: { add() {}, remove() {} },
    storage: { for: () => assert.fail("no names are accepted"), release() {} },
    groupVersions: {
      add: ({ version }) => void announced.push(`+${version}`),
      remove: ({ version }) => void announced.push(`-${version}`),
    },
    ...{ builtInGroups: new Set<string>(), converterFor: () => renameOnly, establishDelayMs: 0, featureEnabled: () => false },
  });
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await informers.waitForSync(end.signal);
  const put = (definition: CustomResourceDefinition) => client.put(customResourceDefinitions, definition);
  const remove = (plural: string) => client.remove(customResourceDefinitions, `${plural}.example.com`);
  /** Waits until all changes up to a last one of another definition have been seen. */
  const expected = async (...want: string[]): Promise<void> => {
    put(aDefinition("last", "v99"));
    await waitFor(() => announced.includes("+v99"), { what: "the last change" });
    remove("last");
    await waitFor(() => announced.includes("-v99"), { what: "its end" });
    assert.deepEqual(
      announced.splice(0).filter((one) => !one.endsWith("v99")),
      want,
    );
  };
  return { put, remove, expected };
}

test("a group version is announced with its first definition and withdrawn with the last one that serves it", async (t) => {
  const { put, remove, expected } = await following(t);
  put(aDefinition("as", "v1", "v2", "-v3"));
  put(aDefinition("bs", "v1"));
  await expected("+v1", "+v2");
  put(aDefinition("as", "v1", "-v2", "v3"));
  await expected("+v3", "-v2");
  put({
    ...aDefinition("as", "v1", "-v2", "v3"),
    status: { conditions: [], acceptedNames: { plural: "as", kind: "as" }, storedVersions: [] },
  });
  await expected();
  remove("bs");
  await expected();
  remove("as");
  await expected("-v1", "-v3");
  put(aDefinition("bs", "v1"));
  await expected("+v1");
});

test("definitions that existed before are known when all of their resources are served, however many versions they have", async (t) => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const definition = aDefinition("as", ...Array.from({ length: 200 }, (_, i) => `v${i + 1}`));
  const acceptedNames = { plural: "as", kind: "as" };
  const conditions = [{ type: "NamesAccepted", status: "True" }];
  client.put(customResourceDefinitions, {
    ...definition,
    status: { acceptedNames, conditions, storedVersions: ["v1"] },
  } as CustomResourceDefinition);
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const served = new Set<string>();
  const customResources = newCustomResources({
    ...{ client, informers, clock, log: discardLogger, memory: unlimitedEntries(), storeOptions: {} },
    turns: new Turns(),
    catalogue: { add: (_definition, { version }) => void served.add(version), remove() {} },
    storage: { for: () => ({}) as Storage, release() {} },
    groupVersions: { add() {}, remove() {} },
    ...{ builtInGroups: new Set<string>(), converterFor: () => renameOnly, establishDelayMs: 0, featureEnabled: () => false },
  });
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await customResources.waitForSync(end.signal);
  assert.equal(served.size, 200);
});
