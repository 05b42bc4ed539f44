/** A reader over objects in memory, with or without permission to read them. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Decision, DecisionReader, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { noDecisions } from "@coxswain/apimachinery/decisions/decision";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import * as refs from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type EventReader, Explainer } from "./explainer.ts";
import { type Explanation, type Finding, nameOf } from "./explanation.ts";

const nowText = "2026-03-01T12:00:00Z";
const now = parseTime(nowText) as number;
/** Default creation time of objects. */
export const earlier = "2026-03-01T11:50:00Z";
export const later = "2026-03-01T11:56:00Z";

const builtIn = Object.values(refs).filter((ref) => "kind" in ref);

const groupOf = ({ apiVersion = "" }: KubeObject): string => parseGroupVersion(apiVersion)?.group ?? "";

/** `{ kind, apiVersion, metadata, … }` with the metadata that every stored object has. */
export function stored(apiVersion: string, kind: string, name: string, rest: object = {}): Unstructured {
  const { metadata, ...others } = rest as { metadata?: object };
  const isCluster = builtIn.some(
    (ref) => ref.kind === kind && ref.group === groupOf({ apiVersion, metadata: {} }) && !ref.namespaced,
  );
  const meta = { name, uid: `uid-${name}`, creationTimestamp: earlier, ...(!isCluster && { namespace: "default" }), ...metadata };
  return { apiVersion, kind, metadata: meta, ...others };
}

/** An event about the object of that kind and name in `default`. */
export const eventAbout = (kind: string, name: string, reason: string, message: string, time = earlier): Event => ({
  metadata: { name: `${name}.${reason}`, namespace: "default" },
  involvedObject: { kind, name, namespace: "default" },
  reason,
  message,
  firstTimestamp: time,
  lastTimestamp: time,
  reportingComponent: "",
  reportingInstance: "",
});

interface World {
  readonly objects: readonly Unstructured[];
  readonly events?: readonly Event[];
  readonly decisions?: readonly Decision[];
  readonly silent?: readonly string[];
  /** Answers queries in place of `decisions` and `silent`. */
  readonly daemons?: DecisionReader;
  /** Resources that the user may not read. */
  readonly hidden?: readonly string[];
}

/** An explanation that reads more goes in circles. */
const mostReads = 1_000;

function readerOf({ objects, events = [], hidden = [] }: World): EventReader {
  let reads = 0;
  const refOfKind = (object: KubeObject) => builtIn.find(({ kind, group }) => kind === object.kind && group === groupOf(object));
  const resourceOfObject = (object: KubeObject): string => refOfKind(object)?.resource ?? `${object.kind?.toLowerCase()}s`;
  const of = (resource: string, group: string, namespace: string): Unstructured[] =>
    objects.filter(
      (object) =>
        resourceOfObject(object) === resource &&
        groupOf(object) === group &&
        (namespace === "" || (object.metadata.namespace ?? namespace) === namespace),
    );
  return {
    now,
    async get(resource, group, namespace, name) {
      if (++reads > mostReads) throw new Error(`more than ${mostReads} objects were read`);
      if (hidden.includes(resource)) return "hidden";
      return (of(resource, group, namespace).find(({ metadata }) => metadata.name === name) as never) ?? "missing";
    },
    async list(resource, group, namespace, selector) {
      if (hidden.includes(resource)) return undefined;
      return of(resource, group, namespace).filter(({ metadata }) => selector?.matches(metadata.labels) ?? true) as never;
    },
    async events({ kind, name }) {
      return events.filter(({ involvedObject }) => involvedObject.kind === kind && involvedObject.name === name);
    },
    mayReadAll: async (asked: readonly ObjectRef[]) => asked.every(({ resource }) => !hidden.includes(resource)),
    mayReadEvents: async () => !hidden.includes("events"),
    resourceOf: (apiVersion, kind) =>
      builtIn.find((ref) => ref.kind === kind && ref.group === parseGroupVersion(apiVersion)?.group),
    namespacedResources: () => [
      ...new Map(
        objects.map((object) => [resourceOfObject(object), { resource: resourceOfObject(object), group: groupOf(object) }]),
      ).values(),
    ],
    refOf: ({ kind = "", metadata: { namespace = "", name = "", uid = "" } }, resource, group) => ({
      group,
      resource,
      kind,
      namespace,
      name,
      uid,
    }),
  };
}

/** Explains the first object of the world. */
export async function explained(world: World, signal: AbortSignal = new AbortController().signal): Promise<Explanation> {
  const reader = readerOf(world);
  const [object] = world.objects;
  if (object === undefined) throw new Error("there is nothing to explain");
  const { kind = "" } = object;
  const resource =
    builtIn.find((ref) => ref.kind === kind && ref.group === groupOf(object))?.resource ?? `${kind.toLowerCase()}s`;
  const told: DecisionReader =
    world.decisions === undefined && world.silent === undefined
      ? noDecisions
      : { of: async () => ({ decisions: world.decisions ?? [], silent: world.silent ?? [] }) };
  const explainer = new Explainer(reader, world.daemons ?? told, signal);
  return explainer.explain({ object, ref: reader.refOf(object, resource, groupOf(object)) });
}

/** The complete findings of every case, by the title of its test: `# title`, then one block for each finding. */
const findingsByTitle = new Map(
  readFileSync(join(import.meta.dirname, "kinds/findings.txt"), "utf8")
    .split(/^# /m)
    .slice(1)
    .map((part): [string, string] => {
      const end = part.indexOf("\n");
      return [part.slice(0, end), part.slice(end + 1).trimEnd()];
    }),
);

/** Compares all fields of the findings with those of `kinds/findings.txt`; a chain without findings is not listed there. */
export function assertFindings(title: string, chain: readonly Finding[]): void {
  const blocks = chain.map(({ object, reason, by, since, summary, remedy, ...rest }) => {
    assert.deepEqual(rest, {}, "fields that findings.txt has no form for");
    const head = `${nameOf(object)}: ${reason}, by ${by}${since === undefined ? "" : `, since ${since}`}`;
    return [head, `  ${summary}`, ...(remedy === undefined ? [] : [`  > ${remedy}`])].join("\n");
  });
  assert.equal(blocks.join("\n"), findingsByTitle.get(title) ?? "", `findings of "${title}"`);
}

export interface Case extends World {
  /** Condition and outcome, as the title of the test; the reason is appended to it. */
  readonly name: string;
  /** The chain of findings as `kind/name`, the cause last; empty: the object is healthy. */
  readonly chain: readonly string[];
  /** Of the cause. */
  readonly reason?: string;
  /** Matches the summary of the cause. */
  readonly says?: RegExp;
  /** Matches the remedy of the cause. */
  readonly remedy?: RegExp;
  /** Of the cause. */
  readonly since?: string;
}

/** Defines one test per case, which explains the first object of its world. */
export function testExplanations(cases: readonly Case[]): void {
  for (const { name, chain, reason, says, remedy, since, ...world } of cases) {
    const title = reason === undefined ? name : `${name}: ${reason}`;
    test(title, async () => {
      const { chain: found, cause, healthy } = await explained(world);
      const shown = JSON.stringify(found);
      assert.deepEqual(
        found.map(({ object }) => nameOf(object)),
        chain,
        shown,
      );
      assert.equal(healthy, chain.length === 0);
      assert.deepEqual(cause, found.at(-1));
      assertFindings(title, found);
      if (reason !== undefined) assert.equal(cause?.reason, reason, shown);
      if (says !== undefined) assert.match(cause?.summary ?? "", says);
      if (remedy !== undefined) assert.match(cause?.remedy ?? "", remedy);
      if (since !== undefined) assert.equal(cause?.since, since, shown);
    });
  }
}

/** A reference to the controller of the object. */
export const ownedBy = (kind: string, name: string, apiVersion = "apps/v1"): object => ({
  ownerReferences: [{ apiVersion, kind, name, uid: `uid-${name}`, controller: true, blockOwnerDeletion: true }],
});

/** A condition that changed `later`. */
export const condition = (type: string, status: string, more: object = {}): object => ({
  type,
  status,
  reason: "R",
  message: "m",
  lastTransitionTime: later,
  ...more,
});

/** `status` with one condition of that type. */
export const conditionOfType = (type: string, status: string, reason: string, message = "why", time = earlier): object => ({
  conditions: [{ type, status, reason, message, lastTransitionTime: time }],
});
