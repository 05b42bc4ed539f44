import assert from "node:assert/strict";
import { test } from "node:test";
import type { Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import type { VolumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { newDesiredVolumes } from "./desired-volumes.ts";
import { newProgressTable } from "./progress.ts";
import type { Resolved } from "./volume.ts";

const [a, b] = ["a", "b"] as unknown as [VolumeId, VolumeId];
const podOn = (name: string, nodeName: string, ...volumes: string[]) =>
  aPod({ name, nodeName, spec: { containers: [], volumes: volumes.map((volume) => ({ name: volume })) } });

/** Resolves each volume to the id that is its name, unless `unknown` contains it. */
function wantedVolumes() {
  const unknown = new Set<string>();
  const wanted = newDesiredVolumes((_, { name }: Volume) =>
    unknown.has(name) ? "unknown" : ({ id: name } as unknown as Resolved),
  );
  const users = (id: VolumeId) => [...wanted.of(id)].map(([node, { pods }]) => `${node}: ${[...pods].join()}`);
  return { wanted, unknown, users };
}

test("a volume is wanted on a node as long as any pod there needs it", () => {
  const { wanted, users } = wantedVolumes();
  assert.deepEqual(wanted.set(podOn("x", "n1", "a", "b"), true), ["a", "b"]);
  wanted.set(podOn("y", "n1", "a"), true);
  wanted.set(podOn("z", "n2", "a"), true);
  assert.deepEqual(users(a), ["n1: default/x,default/y", "n2: default/z"]);
  assert.deepEqual(wanted.forget("default/x"), ["a", "b"]);
  assert.deepEqual([users(a), users(b)], [["n1: default/y", "n2: default/z"], []]);
  assert.deepEqual([wanted.has("default/x"), wanted.has("default/y")], [false, true]);
  assert.deepEqual(wanted.forget("default/x"), []);
  wanted.forget("default/y");
  wanted.forget("default/z");
  assert.deepEqual([...wanted.ids()], [], "nothing is left of what is not needed");
});

test("a pod that no longer needs volumes, or needs others, gives back and says which", () => {
  const { wanted, users } = wantedVolumes();
  wanted.set(podOn("x", "n1", "a"), true);
  assert.deepEqual(wanted.set(podOn("x", "n1", "b"), true).toSorted(), ["a", "b"]);
  assert.deepEqual([users(a), users(b)], [[], ["n1: default/x"]]);
  assert.deepEqual(wanted.set(podOn("x", "n1", "b"), false), ["b"]);
  assert.deepEqual([...wanted.ids()], []);
});

test("a claim that cannot be read keeps the volumes of a pod that stays, not of one that moved or is new", () => {
  const { wanted, unknown, users } = wantedVolumes();
  wanted.set(podOn("x", "n1", "a", "b"), true);
  unknown.add("a");
  wanted.set(podOn("x", "n1", "a", "b"), true);
  assert.deepEqual([users(a), users(b)], [["n1: default/x"], ["n1: default/x"]]);
  wanted.set(podOn("y", "n1", "a"), true);
  assert.deepEqual(users(a), ["n1: default/x"]);
  wanted.set(podOn("x", "n2", "a", "b"), true);
  assert.deepEqual([users(a), users(b)], [[], ["n2: default/x"]]);
});

test("progress is of one volume on one node, is made once, and forgotten for nodes that no longer matter", () => {
  const table = newProgressTable();
  assert.equal(table.peek(a, "n1"), undefined);
  table.of(a, "n1").attachingSince = 5;
  table.of(a, "n3").refused = true;
  table.of(a, "n2").leaving = true;
  table.of(b, "n1").refused = true;
  assert.equal(table.of(a, "n1").attachingSince, 5);
  table.keep(a, new Set(["n2"]));
  assert.deepEqual(
    [table.peek(a, "n1"), table.peek(a, "n3"), table.peek(a, "n2"), table.peek(b, "n1")],
    [undefined, undefined, { leaving: true }, { refused: true }],
  );
  table.forget(a, "n2");
  assert.equal(table.peek(a, "n2"), undefined);
  assert.deepEqual(table.of(a, "n2"), {}, "begun anew, with nothing of before");
  table.keep(b, new Set());
  assert.equal(table.peek(b, "n1"), undefined);
});
