/** Compares the table of metrics with the declarations in the sources and with the tests that it names. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..", "..", "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Definition {
  readonly labels?: readonly string[];
  readonly stability?: string;
  readonly buckets?: readonly number[];
}

const definitionsOf = (folder: string): Record<string, Definition> =>
  JSON.parse(read(`packages/${folder}/src/metrics.json`)) as Record<string, Definition>;
const shared = definitionsOf("apimachinery");
const definitions: Readonly<Record<string, Record<string, Definition>>> = {
  "kube-apiserver": { ...shared, ...definitionsOf("apiserver") },
  "kube-controller-manager": { ...shared, ...definitionsOf("controller-manager") },
  "kube-scheduler": { ...shared, ...definitionsOf("scheduler") },
  kubelet: { ...shared, ...definitionsOf("node-agent") },
};

const facts = read("e2e/facts/metrics.tsv")
  .trimEnd()
  .split("\n")
  .slice(1)
  .map((line) => {
    const [daemon = "", page = "", name = "", , labels = "", stability = "", buckets = "", state = "", note = "", series = ""] =
      line.split("\t");
    return { daemon, page, name, labels, stability, buckets, state, note, series };
  });

test("labels, stability and buckets of declared metrics equal those of the table", () => {
  const compared = facts.flatMap((fact) => {
    const definition = definitions[fact.daemon]?.[fact.name];
    return fact.state === "absent" || definition === undefined ? [] : [{ fact, definition }];
  });
  const wrong = compared.flatMap(({ fact, definition: { labels = [], stability = "ALPHA", buckets } }) => {
    const declared = [labels.toSorted().join(), stability, buckets?.join(" ") ?? fact.buckets];
    const wanted = [fact.labels, fact.stability, fact.buckets === "" ? "" : fact.buckets.split(" ").map(Number).join(" ")];
    return declared.join("|") === wanted.join("|") ? [] : [{ name: fact.name, declared, wanted }];
  });
  assert.deepEqual(wrong, []);
  assert.ok(compared.length > 120, String(compared.length));
});

test("a test that the table names for a metric contains that metric", () => {
  const named = facts.filter(({ series }) => series !== "");
  const wrong = named.filter(({ name, series }) => !read(series).includes(name.replace(/^apiserver_/, "")));
  assert.deepEqual(wrong, []);
  assert.ok(named.length > 0);
});

test("a note that says in which release a metric came or changed names the pull request", () => {
  const dated = facts.filter(({ state, note }) => state === "served" && /\b1\.2\d\b/.test(note));
  assert.deepEqual(
    dated.filter(({ note }) => !/kubernetes#\d+/.test(note)),
    [],
  );
  assert.ok(dated.length > 50, String(dated.length));
});
