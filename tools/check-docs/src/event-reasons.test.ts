import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..", "..", "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const folders: Readonly<Record<string, string>> = {
  "kube-apiserver": "apiserver",
  "kube-controller-manager": "controller-manager",
  "kube-scheduler": "scheduler",
  kubelet: "node-agent",
};

/** Source text of a package and of the shared library, without tests. */
function sourcesOf(folder: string): string {
  const files = globSync([`packages/${folder}/src/**/*.ts`, "packages/apimachinery/src/**/*.ts"], { cwd: root });
  return files
    .filter((path) => !path.endsWith(".test.ts"))
    .map(read)
    .join("\n");
}

/** The source of StatefulSets composes these from the verb. */
const composed: readonly string[] = ["FailedUpdate", "SuccessfulUpdate"];

/** Written by the shared library for the daemons that use it. */
const common: readonly string[] = ["Normal LeaderElection"];

const facts = read("e2e/facts/events.tsv")
  .trimEnd()
  .split("\n")
  .slice(1)
  .map((line) => {
    const [daemon = "", type = "", reason = "", state = "", note = "", shownBy = ""] = line.split("\t");
    return { daemon, type, reason, state, note, shownBy };
  });

test("each event reason of the release is written and tested, or the table says why not", () => {
  const wrong = facts.filter(({ type, state, note, shownBy }) => {
    const known = ["Normal", "Warning"].includes(type) && ["served", "absent"].includes(state);
    return !known || (note === "" && (state === "absent" || shownBy === ""));
  });
  assert.deepEqual(wrong, []);
  assert.ok(facts.length > 100);
});

test("a test that the table names for a reason contains that reason", () => {
  const wrong = facts.filter(({ reason, shownBy }) => shownBy !== "" && !read(shownBy).includes(reason));
  assert.deepEqual(wrong, []);
});

/** Type and reason when they are adjacent in the source: arguments, tuple elements, or object fields. */
const written = /"(Normal|Warning)",\s*"([A-Z]\w+)"|\btype: "(Normal|Warning)",\s*reason: "([A-Z]\w+)"/g;

for (const [daemon, folder] of Object.entries(folders)) {
  test(`the source of ${daemon} contains the event reasons of its rows`, () => {
    const text = sourcesOf(folder);
    const missing = facts
      .filter((row) => row.daemon === daemon && row.state === "served" && !composed.includes(row.reason))
      .filter(({ reason }) => !text.includes(`"${reason}"`));
    assert.deepEqual(missing, []);
  });

  test(`the table contains the events in the source of ${daemon}, with their types`, () => {
    const rows = new Set(facts.filter((row) => row.daemon === daemon).map(({ type, reason }) => `${type} ${reason}`));
    const events = [...sourcesOf(folder).matchAll(written)].map(([, a = "", b = "", c = "", d = ""]) => `${a}${c} ${b}${d}`);
    assert.deepEqual(
      events.filter((event) => !rows.has(event) && !common.includes(event)),
      [],
    );
  });
}
