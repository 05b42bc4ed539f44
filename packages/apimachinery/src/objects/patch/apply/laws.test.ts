/** Property tests of server-side apply with several managers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../../process/event-loop/steps.ts";
import fc from "../../../testing/fast-check.ts";
import { coerce, decodeJson } from "../../codec/json.ts";
import { StatusError } from "../../errors/status-error.ts";
import { deepClone } from "../../meta/deep-equal.ts";
import type { KubeObject, ManagedFieldsEntry, Unstructured } from "../../meta/types.ts";
import type { TypeDescriptor } from "../../schema/descriptor.ts";
import { scheme } from "../../schema/scheme.ts";
import { applyTypeOf } from "./apply-type.ts";
import { FieldManager } from "./field-manager.ts";
import { difference, emptySet, type FieldSet, intersection, paths, readFieldsV1, union } from "./field-set.ts";
import { displayPath } from "./path-element.ts";
import { fieldSetOf } from "./typed-value.ts";

const seed = 20211207;
const kind = { group: "", version: "v1", kind: "Pod" };
const descriptor = scheme.kind(kind) as TypeDescriptor;
const type = applyTypeOf(descriptor);
const pods = new FieldManager({
  apiVersion: "v1",
  kind: "Pod",
  type,
  subresource: "",
  resetFields: [],
  convert: () => undefined,
});

/** Covers associative, set and atomic lists, maps, atomic structs and scalars, in all combinations of nesting. */
const text = fc.constantFrom("1", "1", "1", "2");
const container = fc.record(
  {
    name: fc.constantFrom("a", "b"),
    image: text,
    args: fc.array(text, { maxLength: 2 }),
    ports: fc.uniqueArray(
      fc.record({ containerPort: fc.constantFrom(80, 81), name: fc.constantFrom("p", "q") }, { requiredKeys: ["containerPort"] }),
      { selector: (port) => port.containerPort },
    ),
    resources: fc.record({ limits: fc.dictionary(fc.constantFrom("cpu", "memory"), text, { noNullPrototype: true }) }),
  },
  { requiredKeys: ["name"] },
);
const config = fc
  .record(
    {
      metadata: fc.record(
        {
          labels: fc.dictionary(fc.constantFrom("x", "y", "z"), text, { noNullPrototype: true }),
          finalizers: fc.uniqueArray(fc.constantFrom("example.com/a", "example.com/b")),
        },
        { requiredKeys: [] },
      ),
      spec: fc.record(
        {
          hostname: text,
          nodeSelector: fc.dictionary(fc.constantFrom("x", "y"), text, { noNullPrototype: true }),
          containers: fc.uniqueArray(container, { selector: ({ name }) => name, maxLength: 2 }),
          tolerations: fc.array(fc.record({ key: text }), { maxLength: 2 }),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )
  .map((made) => withoutEmpty(made) as object);

/** Removes empty containers, which Go omits or adds depending on the field. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => [key, withoutEmpty(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => typeof member !== "object" || Object.keys(member ?? {}).length > 0));
}

const whole = (config: object): Unstructured => ({ apiVersion: "v1", kind: "Pod", ...config }) as Unstructured;
let now = 0;

/** Applies a configuration and returns the object as the server stores it: coerced, encoded and decoded. */
function apply(live: KubeObject | undefined, manager: string, config: object, force = false): KubeObject {
  now += 1000;
  const merged = atOnce(pods.apply(live, whole(deepClone(config)), manager, force, now));
  return decodeJson(JSON.stringify(coerce(deepClone(merged), descriptor)), kind).object;
}

/** As `apply`; undefined for a conflict. */
function applied(live: KubeObject | undefined, manager: string, config: object): KubeObject | undefined {
  try {
    return apply(live, manager, config);
  } catch (err) {
    if (err instanceof StatusError && err.code === 409) return undefined;
    throw err;
  }
}

function entryOf(object: KubeObject, manager: string): ManagedFieldsEntry | undefined {
  return object.metadata.managedFields?.find((entry) => entry.manager === manager);
}

function ownedBy(object: KubeObject, manager: string): FieldSet {
  const entry = entryOf(object, manager);
  return entry === undefined ? emptySet : readFieldsV1(entry.fieldsV1);
}

/** The fields of an object without managedFields. */
function fieldsOf(object: KubeObject): FieldSet {
  const { managedFields: _, ...metadata } = object.metadata;
  return fieldSetOf(type, withoutEmpty({ ...object, metadata }));
}

const shown = (set: FieldSet): string[] => paths(set).map(displayPath).sort();

/** The fields that `from` lacks. A container is present when it has contents. */
function missing(fields: FieldSet, from: FieldSet): string[] {
  const present = shown(from);
  const isThere = (field: string): boolean =>
    present.some((one) => one.startsWith(field) && [undefined, ".", "["].includes(one[field.length]));
  return shown(fields).filter((field) => !isThere(field));
}

/** The object without times, and with entries and list items sorted: their order depends on who came first. */
function content(object: KubeObject): unknown {
  const entries = (object.metadata.managedFields ?? []).map(({ time: _, ...entry }) => JSON.stringify(entry)).sort();
  const { managedFields: _, ...metadata } = object.metadata;
  return unordered({ ...object, metadata: { ...metadata, entries } });
}

/** Sorts lists, except atomic ones. */
function unordered(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => unordered(item));
    return ["args", "tolerations"].includes(name)
      ? items
      : items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => [key, unordered(member, key)] as const);
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
}

test("applying twice has the result of applying once, with equal times and bytes", () => {
  fc.assert(
    fc.property(config, config, (first, second) => {
      const live = apply(apply(undefined, "a", first), "b", second, true);
      assert.equal(JSON.stringify(apply(live, "b", second)), JSON.stringify(live));
    }),
    { seed, numRuns: 150 },
  );
});

test("applied fields are present and owned by the manager that applied them", () => {
  fc.assert(
    fc.property(config, config, (first, second) => {
      const live = apply(apply(undefined, "a", first), "b", second, true);
      const wanted = fieldsOf(apply(undefined, "b", second));
      assert.deepEqual(missing(wanted, fieldsOf(live)), []);
      const own = ownedBy(apply(undefined, "b", second), "b");
      assert.deepEqual(shown(ownedBy(live, "b")), shown(own));
    }),
    { seed, numRuns: 150 },
  );
});

test("a field that is no longer applied is removed when it has no other owner, and stays otherwise", () => {
  fc.assert(
    fc.property(config, config, config, (first, second, other) => {
      const before = apply(apply(undefined, "b", other), "a", first, true);
      const after = apply(before, "a", second, true);
      const others = ownedBy(after, "b");
      const kept = union(ownedBy(after, "a"), others);
      const dropped = difference(ownedBy(before, "a"), kept);
      const unowned = new Set(missing(dropped, kept));
      assert.deepEqual(
        shown(intersection(dropped, fieldsOf(after))).filter((field) => unowned.has(field)),
        [],
        "a field without an owner is removed",
      );
      assert.deepEqual(missing(others, fieldsOf(after)), [], "what others own is there");
    }),
    { seed, numRuns: 150 },
  );
});

test("managers without conflicts may apply in any order", () => {
  let inBothOrders = 0;
  fc.assert(
    fc.property(config, config, config, (base, left, right) => {
      const live = apply(undefined, "base", base);
      const one = applied(live, "a", left);
      const other = applied(live, "b", right);
      const ab = one && applied(one, "b", right);
      const ba = other && applied(other, "a", left);
      assert.equal(ab === undefined, ba === undefined, "a conflict in one order is a conflict in the other");
      if (ab === undefined || ba === undefined) return;
      inBothOrders++;
      assert.deepEqual(content(ab), content(ba));
    }),
    { seed, numRuns: 400 },
  );
  assert.ok(inBothOrders > 15, String(inBothOrders));
});

test("a forced apply takes exactly the conflicting fields from other managers", () => {
  let conflicts = 0;
  fc.assert(
    fc.property(config, config, (first, second) => {
      const live = apply(undefined, "a", first);
      let causes: string[] = [];
      try {
        apply(live, "b", second);
      } catch (err) {
        if (!(err instanceof StatusError) || err.code !== 409) throw err;
        causes = (err.status.details?.causes ?? []).map(({ field }) => field as string);
        conflicts++;
      }
      const forced = apply(live, "b", second, true);
      const lost = shown(difference(ownedBy(live, "a"), ownedBy(forced, "a")));
      assert.deepEqual(lost, causes.sort());
    }),
    { seed, numRuns: 150 },
  );
  assert.ok(conflicts > 20, String(conflicts));
});
