import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "../../process/event-loop/steps.ts";
import { cpuMsOf } from "../../testing/cpu-time.ts";
import { formatFieldErrors } from "../errors/field-error.ts";
import type { ObjectMeta } from "../meta/types.ts";
import {
  dns1035LabelProblems,
  dns1123LabelProblems,
  dns1123SubdomainProblems,
  pathSegmentFaults,
  wildcardDns1123SubdomainProblems,
} from "./dns.ts";
import { validateKubeFinalizer, validateObjectMeta, validatingObjectMeta, validatingObjectMetaUpdate } from "./object-meta.ts";
import { labelValueProblems, qualifiedNameProblems } from "./qualified-name.ts";

const long = (length: number): string => "a".repeat(length);

for (const { check, good, bad } of [
  { check: dns1123LabelProblems, good: ["a", "0", "a-b", long(63)], bad: ["", "A", "-a", "a-", "a.b", "a_b", long(64), "ä"] },
  {
    check: dns1123SubdomainProblems,
    good: ["a", "a.b-c.0", long(253)],
    bad: ["", ".", "a.", ".a", "a..b", "A.b", "a_b", long(254), "a.-b"],
  },
  { check: dns1035LabelProblems, good: ["a", "a0", "a-b", long(63)], bad: ["", "0a", "-a", "a-", "A", long(64)] },
  {
    check: wildcardDns1123SubdomainProblems,
    good: ["*.a", "*.a.b", `*.${long(251)}`],
    bad: ["*", "a", "a.b.c", "*.*.a", "*a.b", "*.", `*.${long(252)}`],
  },
  {
    check: qualifiedNameProblems,
    good: ["a", "A_b.c-1", "example.com/A", long(63), `${long(253)}/${long(63)}`],
    bad: [`${long(254)}/a`, `a/${long(64)}`, "", "/a", "a/", "a/b/c", "-a", "a b", "Ex.com/a", long(64)],
  },
  { check: labelValueProblems, good: ["", "a", "A_b.c-1", long(63)], bad: ["-", "a/", "a b", "a-", long(64)] },
]) {
  test(`${check.name} takes what is valid and explains what is not`, () => {
    for (const text of good) assert.deepEqual(check(text), [], text);
    for (const text of bad) assert.notDeepEqual(check(text), [], text);
  });
}

test("a segment of a path is not one that leads elsewhere", () => {
  for (const [name, want] of [
    ["a.b:c", []],
    ["...", []],
    [".", ["may not be '.'"]],
    ["..", ["may not be '..'"]],
    ["a%b/c", ["may not contain '/'", "may not contain '%'"]],
    ["a%b", ["may not contain '%'"]],
    ["/", ["may not contain '/'"]],
  ] as const) {
    assert.deepEqual(pathSegmentFaults(name), want, name);
  }
});

test("a finalizer of a built-in kind is a standard one or has a domain", () => {
  for (const name of ["kubernetes", "orphan", "foregroundDeletion", "example.com/x"])
    assert.deepEqual(validateKubeFinalizer(name, "f"), []);
  assert.equal(
    formatFieldErrors(validateKubeFinalizer("other", "f")),
    'f: Invalid value: "other": name is neither a standard finalizer name nor is it fully qualified',
  );
});

test("explains a name in upstream's words", () => {
  assert.deepEqual(dns1123SubdomainProblems("Web"), [
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  ]);
  assert.deepEqual(dns1123LabelProblems(long(64)), ["must be no more than 63 characters"]);
});

test("validates very long hostile names in linear time", () => {
  const tookMs = cpuMsOf(() => {
    dns1123SubdomainProblems(`${"a-".repeat(50_000)}!`);
    qualifiedNameProblems(`${"a.".repeat(50_000)}!`);
  });
  assert.ok(tookMs < 500, `${tookMs} ms`);
});

const errorsOf = (meta: ObjectMeta, namespaced = true): string =>
  formatFieldErrors(validateObjectMeta(meta, namespaced, dns1123SubdomainProblems, "metadata"));

for (const { name, meta, namespaced = true, want } of [
  {
    name: "complete metadata",
    meta: { name: "a", namespace: "b", labels: { x: "y" }, finalizers: ["example.com/f"] },
    want: /^$/,
  },
  { name: "a base that ends with a dash", meta: { name: "a-x", generateName: "a-", namespace: "b" }, want: /^$/ },
  { name: "no name", meta: { namespace: "b" }, want: /^metadata.name: Required value: name or generateName is required$/ },
  {
    name: "a base and a namespace that are none",
    meta: { name: "a", generateName: "AB-", namespace: "b.c" },
    want: /^\[metadata.generateName: Invalid value: "AB-": a lowercase RFC 1123 subdomain .*, metadata.namespace: Invalid value: "b.c": a lowercase RFC 1123 label/,
  },
  {
    name: "a cluster that is none",
    meta: { name: "a", namespace: "b", clusterName: "C" },
    want: /^metadata.clusterName: Invalid value: "C": a DNS-1035 label/,
  },
  { name: "no namespace", meta: { name: "a" }, want: /^metadata.namespace: Required value$/ },
  {
    name: "a namespace too much",
    meta: { name: "a", namespace: "b" },
    namespaced: false,
    want: /^metadata.namespace: Forbidden: not allowed on this type$/,
  },
  {
    name: "a label's value",
    meta: { name: "a", namespace: "b", labels: { x: "y z" } },
    want: /^metadata.labels: Invalid value: "y z": a valid label/,
  },
  {
    name: "upper case annotations",
    meta: { name: "a", namespace: "b", annotations: { "Example.com/A": "any text" } },
    want: /^$/,
  },
  {
    name: "annotations of more than 256 KiB",
    meta: { name: "a", namespace: "b", annotations: { a: long(256 * 1024) } },
    want: /^metadata.annotations: Too long: must have at most 262144 bytes$/,
  },
  {
    name: "annotations of 256 KiB together",
    meta: { name: "a", namespace: "b", annotations: { a: long(128 * 1024), é1: "", b: long(128 * 1024 - 5) } },
    want: /^metadata.annotations: Invalid value: "é1": name part must consist/,
  },
  {
    name: "annotations of one byte more",
    meta: { name: "a", namespace: "b", annotations: { a: "é".repeat(64 * 1024), b: long(128 * 1024 - 1) } },
    want: /^metadata.annotations: Too long: must have at most 262144 bytes$/,
  },
  {
    name: "a label's key",
    meta: { name: "a", namespace: "b", labels: { "Example.com/a": "" } },
    want: /^metadata.labels: Invalid value: "Example.com\/a": prefix part a lowercase RFC 1123 subdomain/,
  },
  {
    name: "a negative generation",
    meta: { name: "a", namespace: "b", generation: -1 },
    want: /^metadata.generation: Invalid value: -1: must be greater than or equal to 0$/,
  },
  { name: "the generation 0", meta: { name: "a", namespace: "b", generation: 0 }, want: /^$/ },
  {
    name: "a base that is only a dash",
    meta: { name: "a", generateName: "-", namespace: "b" },
    want: /^metadata.generateName: Invalid value: "-": /,
  },
  {
    name: "a finalizer that is no name",
    meta: { name: "a", namespace: "b", finalizers: ["orphan", "a b"] },
    want: /^metadata.finalizers: Invalid value: "a b": name part must consist/,
  },
  {
    name: "an owner of another group that is an Event",
    meta: { name: "a", namespace: "b", ownerReferences: [{ apiVersion: "x/v1", kind: "Event", name: "n", uid: "u" }] },
    want: /^$/,
  },
  {
    name: "an owner of a later version that is an Event",
    meta: { name: "a", namespace: "b", ownerReferences: [{ apiVersion: "v2", kind: "Event", name: "n", uid: "u" }] },
    want: /^$/,
  },
  {
    name: "an owner without anything",
    meta: { name: "a", namespace: "b", ownerReferences: [{ apiVersion: "a/b/c", kind: "", name: "", uid: "" }] },
    want: /^\[metadata.ownerReferences.apiVersion: Invalid value: "a\/b\/c": version must not be empty, metadata.ownerReferences.kind: .*: kind must not be empty, metadata.ownerReferences.name: .*: name must not be empty, metadata.ownerReferences.uid: .*: uid must not be empty\]$/,
  },
  {
    name: "managed fields of the longest manager and subresource",
    meta: {
      name: "a",
      namespace: "b",
      managedFields: [
        { operation: "Update" as const, manager: "é".repeat(64), subresource: "s".repeat(256), fieldsType: "FieldsV1" },
        { operation: "Apply" as const },
      ],
    },
    want: /^$/,
  },
  {
    name: "both deletion finalizers",
    meta: { name: "a", namespace: "b", finalizers: ["orphan", "foregroundDeletion"] },
    want: /^metadata.finalizers: Invalid value: \[\]string\{"orphan", "foregroundDeletion"\}: finalizer orphan and foregroundDeletion cannot be both set$/,
  },
  {
    name: "an owner without version and uid",
    meta: { name: "a", namespace: "b", ownerReferences: [{ apiVersion: "", kind: "K", name: "n", uid: "" }] },
    want: /^\[metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty, metadata.ownerReferences.uid: Invalid value: "": uid must not be empty\]$/,
  },
  {
    name: "an event as owner",
    meta: { name: "a", namespace: "b", ownerReferences: [{ apiVersion: "v1", kind: "Event", name: "n", uid: "u" }] },
    want: /: \/v1, Kind=Event is disallowed from being an owner$/,
  },
  {
    name: "two controllers",
    meta: {
      name: "a",
      namespace: "b",
      ownerReferences: ["x", "y"].map((one) => ({ apiVersion: "v1", kind: "K", name: one, uid: one, controller: true })),
    },
    want: /Only one reference can have Controller set to true. Found "true" in references for x and y$/,
  },
  {
    name: "managed fields of another operation",
    meta: { name: "a", namespace: "b", managedFields: [{ operation: "Merge" as "Apply", manager: "m" }] },
    want: /^metadata.managedFields\[0\].operation: Invalid value: "Merge": must be `Apply` or `Update`$/,
  },
  {
    name: "managed fields of another kind, by an odd manager, of a long subresource",
    meta: {
      name: "a",
      namespace: "b",
      managedFields: [
        {
          operation: "Update" as const,
          fieldsType: "FieldsV2",
          manager: "é\n\u{e000}",
          subresource: "é".repeat(129), // 258 bytes
        },
      ],
    },
    want: /\.fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`, .*: invalid character U\+000A \(at position 2\), .*: invalid character U\+E000 \(at position 3\), .*\.subresource: Too long: must have at most 256 bytes\]$/,
  },
  {
    name: "managed fields of a long manager",
    meta: { name: "a", namespace: "b", managedFields: [{ operation: "Apply" as const, manager: "m".repeat(129) }] },
    want: /^metadata.managedFields\[0\].manager: Too long: must have at most 128 bytes$/,
  },
]) {
  test(`new metadata: ${name}`, () => assert.match(errorsOf(meta, namespaced), want));
}

const stored: ObjectMeta = {
  name: "a",
  namespace: "b",
  uid: "1",
  resourceVersion: "5",
  generation: 2,
  creationTimestamp: "2022-01-01T00:00:00Z",
};
for (const { name, change, current = stored, want } of [
  { name: "nothing", change: {}, want: /^$/ },
  { name: "labels", change: { labels: { a: "b" } }, want: /^$/ },
  { name: "the name", change: { name: "c" }, want: /^metadata.name: Invalid value: "c": field is immutable$/ },
  {
    name: "fields that only the server writes",
    change: {
      namespace: "c",
      clusterName: "d",
      deletionTimestamp: "2022-01-02T00:00:00Z",
      deletionGracePeriodSeconds: 5,
    },
    want: /^\[metadata.namespace: Invalid value: "c": field is immutable, metadata.deletionTimestamp: Invalid value: 2022-01-02 00:00:00 \+0000 UTC: field is immutable, metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable, metadata.clusterName: Invalid value: "d": field is immutable\]$/,
  },
  {
    name: "owners and managed fields of nothing",
    change: {
      ownerReferences: [{ apiVersion: "v1", kind: "", name: "n", uid: "u" }],
      managedFields: [{ operation: "Merge" as "Apply", manager: "m" }],
    },
    want: /^\[metadata.ownerReferences.kind: Invalid value: "": kind must not be empty, metadata.managedFields\[0\].operation: Invalid value: "Merge": must be `Apply` or `Update`\]$/,
  },
  {
    name: "the name of a cluster",
    change: { clusterName: "c" } as Partial<ObjectMeta>,
    want: /^metadata.clusterName: Invalid value: "c": field is immutable$/,
  },
  { name: "a larger generation", change: { generation: 3 }, want: /^$/ },
  {
    name: "no generation",
    change: { generation: undefined },
    want: /^metadata.generation: Invalid value: 0: must not be decremented$/,
  },
  { name: "a cluster", change: { clusterName: "c" }, want: /^metadata.clusterName: Invalid value: "c": field is immutable$/ },
  { name: "the time of creation in another form", change: { creationTimestamp: "2022-01-01T01:00:00+01:00" }, want: /^$/ },
  {
    name: "no time of creation",
    change: { creationTimestamp: undefined },
    want: /^metadata.creationTimestamp: Invalid value: 0001-01-01 00:00:00 \+0000 UTC: field is immutable$/,
  },
  {
    name: "no time of deletion any more, and no time to end",
    change: { deletionTimestamp: undefined, deletionGracePeriodSeconds: undefined },
    current: { ...stored, deletionTimestamp: "2022-01-02T00:00:00Z", deletionGracePeriodSeconds: 0 },
    want: /^\[metadata.deletionTimestamp: Invalid value: "null": field is immutable, metadata.deletionGracePeriodSeconds: Invalid value: "null": field is immutable\]$/,
  },
  { name: "a new finalizer", change: { finalizers: ["a/b"] }, want: /^$/ },
  {
    name: "one finalizer less while it is being deleted",
    change: { finalizers: ["x/y"], deletionTimestamp: "2022-01-02T00:00:00Z" },
    current: { ...stored, deletionTimestamp: "2022-01-02T00:00:00Z", finalizers: ["x/y", "a/b"] },
    want: /^$/,
  },
  {
    name: "two new finalizers while it is being deleted, which are sorted",
    change: { finalizers: ["z/z", "a/b"], deletionTimestamp: "2022-01-02T00:00:00Z" },
    current: { ...stored, deletionTimestamp: "2022-01-02T00:00:00Z" },
    want: /found new finalizers \[\]string\{"a\/b", "z\/z"\}$/,
  },
  {
    name: "annotations and labels of nothing",
    change: { annotations: { "-": "" }, labels: { a: "-" } },
    want: /^\[metadata.labels: Invalid value: "-": a valid label .*, metadata.annotations: Invalid value: "-": name part/,
  },
  { name: "the uid", change: { uid: "2" }, want: /^metadata.uid: Invalid value: "2": field is immutable$/ },
  {
    name: "the time of creation",
    change: { creationTimestamp: "2023-01-01T00:00:00Z" },
    want: /^metadata.creationTimestamp: Invalid value: 2023-01-01 00:00:00 \+0000 UTC: field is immutable$/,
  },
  {
    name: "a smaller generation",
    change: { generation: 1 },
    want: /^metadata.generation: Invalid value: 1: must not be decremented$/,
  },
  {
    name: "no resourceVersion",
    change: { resourceVersion: "" },
    want: /^metadata.resourceVersion: Invalid value: "": must be specified for an update$/,
  },
  {
    name: "a new finalizer while it is being deleted",
    change: { finalizers: ["x/y", "a/b"], deletionTimestamp: "2022-01-02T00:00:00Z" },
    current: { ...stored, deletionTimestamp: "2022-01-02T00:00:00Z", finalizers: ["x/y"] },
    want: /^metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \[\]string\{"a\/b"\}$/,
  },
] as { name: string; change: Partial<ObjectMeta>; current?: ObjectMeta; want: RegExp }[]) {
  test(`changed metadata: ${name}`, () => {
    assert.match(formatFieldErrors(atOnce(validatingObjectMetaUpdate({ ...current, ...change }, current, "metadata"))), want);
  });
}

test("tens of thousands of new finalizers, or of second controllers, are validated in linear time", () => {
  const names = (prefix: string): string[] => Array.from({ length: 40_000 }, (_, i) => `example.com/${prefix}${i}`);
  const current = { name: "a", namespace: "b", deletionTimestamp: "2022-01-02T00:00:00Z", finalizers: names("x") };
  const owner = (i: number) => ({ apiVersion: "v1", kind: "Pod", name: "p", uid: `${i}`, controller: true });
  const ownerReferences = Array.from({ length: 5_000 }, (_, i) => owner(i));
  const tookMs = cpuMsOf(() => {
    assert.equal(
      atOnce(validatingObjectMetaUpdate({ ...current, resourceVersion: "1", finalizers: names("y") }, current, "m")).length,
      1,
    );
    const errors = validateObjectMeta({ name: "a", namespace: "b", ownerReferences }, true, dns1123SubdomainProblems, "m");
    assert.equal(errors.length, 4_999);
  });
  assert.ok(tookMs < 1000, `${tookMs} ms`);
});

for (const [field, value] of Object.entries({
  labels: Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [at === 9_999 ? "-" : `k${at}`, "v"])),
  annotations: Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [at === 9_999 ? "-" : `k${at}`, "v"])),
  finalizers: Array.from({ length: 10_000 }, (_, at) => (at === 9_999 ? "-" : `x.y/k${at}`)),
})) {
  test(`many ${field} are validated in steps, to the last`, () => {
    const meta: ObjectMeta = { name: "a", resourceVersion: "1", [field]: value };
    const isPartOfUpdates = field !== "finalizers";
    for (const steps of [
      validatingObjectMeta(meta, false, dns1123SubdomainProblems, "metadata"),
      ...(isPartOfUpdates ? [validatingObjectMetaUpdate(meta, meta, "metadata")] : []),
    ]) {
      let yields = 0;
      let step = steps.next();
      for (; !step.done; step = steps.next()) yields++;
      assert.equal(yields, 4);
      assert.equal(step.value.length, 1);
      assert.match(formatFieldErrors(step.value), new RegExp(`^metadata.${field}: Invalid value: "-"`));
    }
  });
}
