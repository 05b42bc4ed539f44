import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { choose } from "./choose.ts";
import { writeRecord } from "./cluster-record.ts";
import { readRegistry, register, unregister, withRegistry } from "./registry.ts";
import { type defaultChoices, newSettings } from "./settings.ts";

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "registry-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Decides settings like `up`, with all ports free. */
async function decide(folder: string, state: string): Promise<ReturnType<typeof defaultChoices>> {
  return withRegistry(
    new AbortController().signal,
    async (others) => {
      const decided = await choose(
        { nodeName: "node" },
        {
          nameFlag: "",
          record: undefined,
          hasData: false,
          isRunning: false,
          others,
          routes: [],
          isPortFree: async () => true,
          say: () => {},
        },
      );
      writeRecord(state, decided);
      register(newSettings("/clone", "default", state, decided.choices), decided.choices, folder);
      return decided.choices;
    },
    folder,
  );
}

test("clusters created at the same time share no port and no network", async (t) => {
  const folder = join(newFolder(t), "run");
  const decided = await Promise.all(Array.from({ length: 5 }, () => decide(folder, newFolder(t))));
  const ports = decided.flatMap((choices) => Object.values(choices.ports));
  assert.equal(new Set(ports).size, ports.length);
  assert.equal(new Set(decided.flatMap(({ podCidr, serviceCidr }) => [podCidr, serviceCidr])).size, 10);
  assert.equal(readRegistry(folder).length, 5);
});

test("entries of clusters without data, and invalid entries, are removed", async (t) => {
  const folder = join(newFolder(t), "run");
  const first = newFolder(t);
  await decide(folder, first);
  writeFileSync(join(folder, "damaged.json"), "{");
  rmSync(join(first, "cluster.json"));
  assert.deepEqual(readRegistry(folder), []);
  assert.equal((await decide(folder, newFolder(t))).podCidr, "10.244.0.0/16");
  const [only] = readRegistry(folder);
  assert.equal(readRegistry(folder).length, 1);
  unregister(only?.id ?? "", folder);
  assert.deepEqual(readRegistry(folder), []);
});
