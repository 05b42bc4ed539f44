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

/** Text of the sources of a package and of the shared library, without tests. */
function sourcesOf(folder: string): string {
  const files = globSync([`packages/${folder}/src/**/*.ts`, "packages/apimachinery/src/**/*.ts"], { cwd: root });
  return files
    .filter((path) => !path.endsWith(".test.ts"))
    .map(read)
    .join("\n");
}

const facts = read("e2e/facts/events.tsv")
  .trimEnd()
  .split("\n")
  .slice(1)
  .map((line) => {
    const [daemon = "", type = "", reason = "", state = "", note = ""] = line.split("\t");
    return { daemon, type, reason, state, note };
  });

test("each reason of an event of the release is written, or the table says why not", () => {
  const wrong = facts.filter(({ type, state, note }) => {
    return (
      !["Normal", "Warning"].includes(type) || !["served", "absent"].includes(state) || (state === "absent") !== (note !== "")
    );
  });
  assert.deepEqual(wrong, []);
  assert.ok(facts.length > 100);
});

for (const [daemon, folder] of Object.entries(folders)) {
  test(`the source of ${daemon} has the reasons of events that the table says it writes`, () => {
    const text = sourcesOf(folder);
    const missing = facts.filter((row) => row.daemon === daemon && row.state === "served" && !text.includes(`"${row.reason}"`));
    assert.deepEqual(missing, []);
  });
}
