import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { check } from "./check.ts";
import { newRecording } from "./recorder.ts";
import {
  byLabel,
  everything,
  type Read,
  type Recording,
  type SeenEvent,
  type Version,
  type WatchSession,
  type Write,
} from "./records.ts";

const anObject = (name: string, revision: number, tag: string, labels: Record<string, string> = {}): KubeObject =>
  ({
    metadata: { name, namespace: "n", uid: `uid-${name}`, resourceVersion: String(revision), labels },
    data: { tag },
  }) as KubeObject;
const stored = (revision: number, name: string, version: number, tag: string, labels?: Record<string, string>): Version => {
  return { key: `n/${name}`, revision, version, object: anObject(name, revision, tag, labels) };
};
const deleted = (revision: number, name: string): Version => ({ key: `n/${name}`, revision, version: 0, object: undefined });

/** Revisions of a: 2, 4, deleted at 6; of b: 3, 5. */
const history: Version[] = [
  stored(2, "a", 1, "t2"),
  stored(3, "b", 1, "t3", { on: "y" }),
  stored(4, "a", 2, "t4"),
  stored(5, "b", 2, "t5"),
  deleted(6, "a"),
];

const common = { client: "c", folder: "things", start: 10, end: 11 };
const aWrite = (change: Partial<Write>): Recording => ({
  ...newRecording(),
  writes: [
    { ...common, verb: "update", key: "n/a", tag: "t4", basedOn: 2, code: 200, answer: anObject("a", 4, "t4"), ...change },
  ],
});
const aRead = (change: Partial<Read>): Read => ({
  ...{ ...common, code: 200, prefix: "n/a", selection: everything, revision: undefined, exact: false, limit: undefined },
  ...{ previous: undefined, listRevision: undefined, items: [anObject("a", 4, "t4")], continueToken: undefined, ...change },
});
const reads = (...all: Partial<Read>[]): Recording => ({ ...newRecording(), reads: all.map(aRead) });
const event = (type: SeenEvent["type"], revision: number, name = "a", tag = `t${revision}`, labels = {}): SeenEvent => {
  return { at: 12, type, object: anObject(name, revision, tag, labels) };
};
const aWatch = (events: SeenEvent[], change: Partial<WatchSession> = {}): Recording => ({
  ...newRecording(),
  watches: [{ ...common, code: 200, prefix: "n/a", selection: everything, revision: 1, events, ...change }],
});
const list = { prefix: "n/", listRevision: 4, items: [anObject("a", 4, "t4"), anObject("b", 3, "t3", { on: "y" })] };

for (const { name, recording, want, versions = history } of [
  { name: "an honest write", recording: aWrite({}), want: undefined },
  {
    name: "an acknowledged write that is not there",
    recording: aWrite({ tag: "lost" }),
    want: /acknowledged and is not in etcd/,
  },
  {
    name: "a refused write that is there",
    recording: aWrite({ code: 409, answer: undefined }),
    want: /answered 409 and is in etcd/,
  },
  {
    name: "a write without an answer that is there",
    recording: aWrite({ code: undefined, end: undefined, answer: undefined }),
    want: undefined,
  },
  {
    name: "a write without an answer that is not there",
    recording: aWrite({ code: undefined, end: undefined, tag: "x" }),
    want: undefined,
  },
  {
    name: "a write that replaced what its writer had not seen",
    recording: aWrite({ basedOn: 1 }),
    want: /based on revision 1 and replaced 2/,
  },
  {
    name: "an apply that makes what was deleted",
    recording: aWrite({ verb: "apply", tag: "t2", answer: anObject("a", 2, "t2"), basedOn: 1 }),
    want: undefined,
  },
  {
    name: "a write that was answered another revision",
    recording: aWrite({ answer: anObject("a", 5, "t4") }),
    want: /answered revision 5/,
  },
  {
    name: "a write that was answered another object",
    recording: aWrite({ answer: anObject("a", 4, "t4", { x: "" }) }),
    want: /another object/,
  },
  {
    name: "a write that was applied twice",
    recording: aWrite({}),
    versions: [...history, stored(7, "b", 3, "t4")],
    want: /applied 2 times/,
  },
  {
    name: "a deletion that did not happen",
    recording: aWrite({ verb: "delete", tag: undefined, answer: { details: { uid: "other" } } as unknown as KubeObject }),
    want: /never deleted/,
  },
  {
    name: "a hole in etcd's history",
    recording: newRecording(),
    versions: history.filter((v) => v.revision !== 2),
    want: /misses something/,
  },

  { name: "an honest read", recording: reads({}), want: undefined },
  { name: "a read of what never was", recording: reads({ items: [anObject("a", 3, "t3")] }), want: /never was/ },
  { name: "a read of another object", recording: reads({ items: [anObject("a", 4, "t2")] }), want: /another object/ },
  {
    name: "a read older than requested",
    recording: reads({ revision: 4, items: [anObject("a", 2, "t2")] }),
    want: /though 4 was requested/,
  },
  {
    name: "a read of the past after a read of the present",
    recording: reads({ start: 1, end: 2 }, { start: 3, end: 4, items: [anObject("a", 2, "t2")] }),
    want: /4 had been seen/,
  },
  {
    name: "the same two at the same time",
    recording: reads({ start: 1, end: 4 }, { start: 3, end: 4, items: [anObject("a", 2, "t2")] }),
    want: undefined,
  },
  {
    name: "an absence after the presence, before the deletion was seen",
    recording: reads({ start: 1, end: 2 }, { start: 3, end: 4, items: [], code: 404 }, { start: 5, end: 6 }),
    want: /6 had been seen/,
  },
  {
    name: "a read of what was written later",
    recording: { ...aWrite({ start: 5, end: 6 }), reads: [aRead({ start: 1, end: 2 })] },
    want: /4 had been seen/,
  },

  { name: "an honest list", recording: reads(list), want: undefined },
  {
    name: "a list without one of its objects",
    recording: reads({ ...list, items: list.items.slice(1) }),
    want: /missing n\/a@4/,
  },
  { name: "a list with an older object", recording: reads({ ...list, listRevision: 5 }), want: /missing n\/b@5, surplus n\/b@3/ },
  { name: "a list that is not exact", recording: reads({ ...list, exact: true, revision: 3 }), want: /is of revision 4/ },
  { name: "a list older than requested", recording: reads({ ...list, revision: 5 }), want: /older revision 4/ },
  {
    name: "a list with a selector",
    recording: reads({ ...list, selection: byLabel("on", "y"), items: list.items.slice(1) }),
    want: undefined,
  },
  {
    name: "pages of two revisions",
    recording: reads({
      ...list,
      listRevision: 5,
      items: [anObject("b", 5, "t5")],
      previous: aRead({ ...list, items: list.items.slice(0, 1) }),
    }),
    want: /a page of revision 4 is followed by one of 5/,
  },
  {
    name: "a page that hides that there is more",
    recording: reads({ ...list, limit: 1, items: list.items.slice(0, 1) }),
    want: /wrong about what follows/,
  },

  {
    name: "an honest watch",
    recording: aWatch([event("ADDED", 2), event("MODIFIED", 4), event("DELETED", 6, "a", "t4")]),
    want: undefined,
  },
  {
    name: "a watch with a gap",
    recording: aWatch([event("ADDED", 2), event("DELETED", 6, "a", "t4")]),
    want: /DELETED n\/a@6 instead of MODIFIED n\/a@4/,
  },
  {
    name: "a watch that repeats",
    recording: aWatch([event("ADDED", 2), event("ADDED", 2)]),
    want: /ADDED n\/a@2 instead of MODIFIED/,
  },
  {
    name: "a watch that shows what is before its start",
    recording: aWatch([event("ADDED", 2)], { revision: 2 }),
    want: /ADDED n\/a@2 instead/,
  },
  {
    name: "a watch of another type of event",
    recording: aWatch([event("MODIFIED", 2)]),
    want: /MODIFIED n\/a@2 instead of ADDED/,
  },
  { name: "a bookmark that is right", recording: aWatch([event("ADDED", 2), event("BOOKMARK", 3)]), want: undefined },
  {
    name: "a bookmark ahead of an event",
    recording: aWatch([event("ADDED", 2), event("BOOKMARK", 4)]),
    want: /bookmark of 4 before MODIFIED n\/a@4/,
  },
  {
    name: "a bookmark with an earlier revision",
    recording: aWatch([event("ADDED", 2), event("BOOKMARK", 1)]),
    want: /bookmark of 1 after 2/,
  },
  {
    name: "an object that stops matching",
    recording: aWatch([event("ADDED", 3, "b", "t3", { on: "y" }), event("DELETED", 5, "b", "t3", { on: "y" })], {
      prefix: "",
      selection: byLabel("on", "y"),
    }),
    want: undefined,
  },
  {
    name: "a watch from now on that continues",
    recording: aWatch([event("ADDED", 4), event("ADDED", 3, "b", "t3", { on: "y" }), event("MODIFIED", 5, "b")], {
      prefix: "",
      revision: 0,
    }),
    want: undefined,
  },
  {
    name: "a watch of a present that never was",
    recording: aWatch([event("ADDED", 4), event("ADDED", 5, "b"), event("ADDED", 2)], { prefix: "", revision: 0 }),
    want: /instead|at no revision/,
  },
] as { name: string; recording: Recording; versions?: Version[]; want: RegExp | undefined }[]) {
  test(`the checker ${want === undefined ? "passes" : "finds"} ${name}`, () => {
    const broken = check(recording, versions);
    if (want === undefined) assert.deepEqual(broken, []);
    else assert.match(broken.join("\n"), want);
  });
}
