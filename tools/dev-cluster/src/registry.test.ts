import assert from "node:assert/strict";
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { choose } from "./choose.ts";
import { writeRecord } from "./cluster-record.ts";
import { Failure, Interrupted } from "./failure.ts";
import { holderOf } from "./lock.ts";
import { foldersRead, readRegistry, register, registryFolder, unregister, withRegistry } from "./registry.ts";
import { defaultChoices, newSettings } from "./settings.ts";

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

for (const [env, uid, folder, read] of [
  [{}, 0, "/run/coxswain", ["/run/coxswain"]],
  [{ XDG_RUNTIME_DIR: "/run/user/0" }, 0, "/run/coxswain", ["/run/coxswain"]],
  [{}, 7, "/tmp/coxswain-7", ["/tmp/coxswain-7", "/run/coxswain"]],
  [{ XDG_RUNTIME_DIR: "" }, 7, "/tmp/coxswain-7", ["/tmp/coxswain-7", "/run/coxswain"]],
  [{ XDG_RUNTIME_DIR: "/run/user/7" }, 7, "/run/user/7/coxswain-7", ["/run/user/7/coxswain-7", "/run/coxswain"]],
  [{ XDG_RUNTIME_DIR: "/run/user/7", COX_REGISTRY: "/r" }, 7, "/r", ["/r"]],
  [{ COX_REGISTRY: "/r" }, 0, "/r", ["/r"]],
] as const)
  test(`uid ${uid} with ${JSON.stringify(env)} registers clusters in ${folder}`, () => {
    assert.equal(registryFolder(env, uid), folder);
    assert.deepEqual(foldersRead(folder, env, uid), read);
  });

test("an entry has what other clusters must not use; COX_REGISTRY names the folder", async (t) => {
  const folder = join(newFolder(t), "run");
  const earlier = process.env["COX_REGISTRY"];
  t.after(() => {
    if (earlier === undefined) delete process.env["COX_REGISTRY"];
    else process.env["COX_REGISTRY"] = earlier;
  });
  process.env["COX_REGISTRY"] = folder;
  const choices = { ...defaultChoices(), nodeName: "n", fakeNodes: 2 };
  const states = [newFolder(t), newFolder(t)];
  for (const [index, state] of states.entries()) {
    const settings = newSettings("/clone", `c${index}`, state, choices);
    writeRecord(state, { requested: {}, choices });
    await withRegistry(new AbortController().signal, async () => {
      assert.equal(holderOf(join(folder, "lock"))?.verb, "up");
      register(settings, choices);
    });
  }
  const wanted = states.map((state, index) => {
    const { id } = newSettings("/clone", "", state, choices);
    return { ...choices, withNode: false, id, name: `c${index}`, root: "/clone", state };
  });
  const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
  assert.deepEqual(readRegistry().toSorted(byName), wanted);
  const files = wanted.map(({ id }) => `${id}.json`).toSorted();
  assert.deepEqual(readdirSync(folder).toSorted(), [...files, "lock"]);
  assert.deepEqual(
    files.map((file) => (statSync(join(folder, file)).mode & 0o777).toString(8)),
    ["644", "644"],
  );
  assert.equal((statSync(folder).mode & 0o777).toString(8), process.getuid?.() === 0 ? "755" : "700");
  unregister(wanted[0]!.id);
  unregister(wanted[0]!.id); // is gone
  assert.deepEqual(readRegistry(), wanted.slice(1));
});

test("a cluster registers, and what is left of clusters that are gone is removed; one that cannot be read stays", async (t) => {
  const folder = join(newFolder(t), "run");
  const [gone, unreadable, next] = [newFolder(t), newFolder(t), newFolder(t)];
  await decide(folder, gone);
  await decide(folder, unreadable);
  rmSync(join(gone, "cluster.json"));
  rmSync(join(unreadable, "cluster.json"));
  mkdirSync(join(unreadable, "cluster.json"));
  writeFileSync(join(folder, "damaged.json"), "{");
  writeFileSync(join(folder, "note.txt"), "");
  const { podCidr } = await decide(folder, next);
  assert.equal(podCidr, "10.244.0.0/16", "that of the first, which is gone");
  const idOf = (state: string): string => newSettings("/clone", "", state, defaultChoices()).id;
  assert.deepEqual(
    readdirSync(folder).toSorted(),
    [`${idOf(unreadable)}.json`, `${idOf(next)}.json`, "lock", "note.txt"].toSorted(),
  );
});

test("a registry that cannot be made, or belongs to another user, is not used", async (t) => {
  const work = async (): Promise<void> => assert.fail("not reached");
  const refused = (folder: string, why: string): Promise<void> =>
    assert.rejects(withRegistry(new AbortController().signal, work, folder), (err) => {
      assert.ok(err instanceof Failure);
      assert.ok(err.message.startsWith(`cannot use ${folder}, where the clusters of this machine are kept: ${why}`), err.message);
      return true;
    });
  const folder = newFolder(t);
  writeFileSync(join(folder, "file"), "");
  await refused(join(folder, "file", "run"), "E");
  if (process.getuid?.() !== 0) return;
  chownSync(folder, 1, 1);
  await refused(folder, "it belongs to another user");
});

test("a command that waits for the registry is silent, and can be interrupted", async (t) => {
  const folder = join(newFolder(t), "run");
  const controller = new AbortController();
  const written = t.mock.method(process.stderr, "write", () => true);
  const held = Promise.withResolvers<void>();
  const first = withRegistry(controller.signal, () => held.promise, folder);
  const second = withRegistry(controller.signal, async () => assert.fail("not reached"), folder);
  controller.abort(new Interrupted("SIGINT"));
  await assert.rejects(second, Interrupted);
  held.resolve();
  await first;
  assert.equal(written.mock.callCount(), 0);
});

test("a cluster is registered before it has a record", (t) => {
  const folder = newFolder(t);
  const settings = newSettings("/clone", "default", newFolder(t), defaultChoices());
  register(settings, defaultChoices(), folder);
  assert.deepEqual(readdirSync(folder), [`${settings.id}.json`]);
});
