import assert from "node:assert/strict";
import { test } from "node:test";
import * as field from "./field-error.ts";
import { child, index, mapKey } from "./field-error.ts";
import { GoText, goStrings, goUntyped } from "./go-syntax.ts";
import { isConflict, isInternalError, isNotFound, isTooManyRequests, reasonOf, suggestsDelay } from "./predicates.ts";
import { reasonCodes } from "./reasons.ts";
import * as errors from "./status-error.ts";

const pods = { group: "", resource: "pods" };
const deployments = { group: "apps", resource: "deployments" };
const failure = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" };

for (const { err, want } of [
  {
    err: errors.notFound(deployments, "web"),
    want: {
      message: 'deployments.apps "web" not found',
      reason: "NotFound",
      details: { name: "web", group: "apps", kind: "deployments" },
      code: 404,
    },
  },
  {
    err: errors.alreadyExists(pods, "a"),
    want: { message: 'pods "a" already exists', reason: "AlreadyExists", details: { name: "a", kind: "pods" }, code: 409 },
  },
  {
    err: errors.conflict(pods, "a", "the object has been modified"),
    want: {
      message: 'Operation cannot be fulfilled on pods "a": the object has been modified',
      reason: "Conflict",
      details: { name: "a", kind: "pods" },
      code: 409,
    },
  },
  {
    err: errors.forbidden(pods, "", 'User "x" cannot list'),
    want: { message: 'pods is forbidden: User "x" cannot list', reason: "Forbidden", details: { kind: "pods" }, code: 403 },
  },
  {
    err: errors.forbidden({ group: "", resource: "" }, "", "no"),
    want: { message: "forbidden: no", reason: "Forbidden", details: {}, code: 403 },
  },
  {
    err: errors.methodNotSupported(pods, "patch"),
    want: {
      message: 'patch is not supported on resources of kind "pods"',
      reason: "MethodNotAllowed",
      details: { kind: "pods" },
      code: 405,
    },
  },
  {
    err: errors.serverTimeout(pods, "list", 2),
    want: {
      message: "The list operation against pods could not be completed at this time, please try again.",
      reason: "ServerTimeout",
      details: { name: "list", kind: "pods", retryAfterSeconds: 2 },
      code: 500,
    },
  },
  {
    err: errors.tooLargeResourceVersion(5, 3, 1),
    want: {
      message: "Timeout: Too large resource version: 5, current: 3",
      reason: "Timeout",
      details: { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }], retryAfterSeconds: 1 },
      code: 504,
    },
  },
  {
    err: errors.internalError(new Error("boom")),
    want: {
      message: "Internal error occurred: boom",
      reason: "InternalError",
      details: { causes: [{ message: "boom" }] },
      code: 500,
    },
  },
  {
    err: errors.requestEntityTooLarge("limit is 3"),
    want: { message: "Request entity too large: limit is 3", reason: "RequestEntityTooLarge", code: 413 },
  },
  { err: errors.unauthorized(), want: { message: "Unauthorized", reason: "Unauthorized", code: 401 } },
  { err: errors.resourceExpired("too old"), want: { message: "too old", reason: "Expired", code: 410 } },
]) {
  test(`says: ${want.message}`, () => {
    assert.deepEqual(err.status, { ...failure, ...want });
    assert.equal(err.code, want.code);
    assert.equal(reasonCodes[err.reason as keyof typeof reasonCodes], want.code);
  });
}

test("lists all field errors of an invalid object, and each as a cause", () => {
  const list = [field.required("spec.a"), field.invalidValue("spec.b", 5, "must be less")];
  const { status } = errors.invalid({ group: "apps", kind: "Deployment" }, "web", list);
  assert.equal(
    status.message,
    'Deployment.apps "web" is invalid: [spec.a: Required value, spec.b: Invalid value: 5: must be less]',
  );
  assert.deepEqual(status.details, {
    name: "web",
    group: "apps",
    kind: "Deployment",
    causes: [
      { reason: "FieldValueRequired", message: "Required value", field: "spec.a" },
      { reason: "FieldValueInvalid", message: "Invalid value: 5: must be less", field: "spec.b" },
    ],
  });
  const one = errors.invalid({ group: "", kind: "Pod" }, "x", [list[0] as field.FieldError]);
  assert.equal(one.message, 'Pod "x" is invalid: spec.a: Required value');
  assert.equal(errors.invalid({ group: "", kind: "Pod" }, "x", []).message, 'Pod "x" is invalid');
});

for (const { name, count, make, shown } of [
  {
    name: "many errors",
    count: 200_000,
    make: (path: string) => field.required(path),
    shown: 1000,
  },
  {
    name: "long errors",
    count: 100,
    make: (path: string) => field.invalidValue(path, "x".repeat(300_000), "is wrong"),
    shown: 4,
  },
]) {
  test(`of ${name} the first are shown, and how many more there are`, () => {
    const list = Array.from({ length: count }, (_, i) => make(`spec.items[${i}]`));
    const { status } = errors.invalid({ group: "", kind: "Pod" }, "web", list);
    assert.equal(status.details?.causes?.length, shown);
    assert.ok(status.message?.startsWith('Pod "web" is invalid: [spec.items[0]: '));
    assert.ok(status.message?.endsWith(`, and ${count - shown} more]`));
  });
}

for (const { error, want } of [
  { error: field.required("a", "one of"), want: "a: Required value: one of" },
  { error: field.invalidValue("a", 'x"y', "bad"), want: 'a: Invalid value: "x\\"y": bad' },
  { error: field.invalidValue("a", null, "bad"), want: 'a: Invalid value: "null": bad' },
  { error: field.invalidValue("a", true, "bad"), want: "a: Invalid value: true: bad" },
  { error: field.invalidValue("a", ["x", "y"], "bad"), want: 'a: Invalid value: []string{"x", "y"}: bad' },
  {
    error: field.invalidValue("a", { b: 1, a: "x" }, "bad"),
    want: 'a: Invalid value: map[string]interface {}{"a":"x", "b":1}: bad',
  },
  { error: field.invalidValue("a", { k: "v" }, "bad"), want: 'a: Invalid value: map[string]string{"k":"v"}: bad' },
  { error: field.invalidValue("a", new GoText("core.X{}"), "bad"), want: "a: Invalid value: core.X{}: bad" },
  {
    error: field.invalidValue("a", goStrings("core.IPFamily", ["IPv4"]), "bad"),
    want: 'a: Invalid value: []core.IPFamily{"IPv4"}: bad',
  },
  { error: field.notSupported("a", "x", ["A", "B"]), want: 'a: Unsupported value: "x": supported values: "A", "B"' },
  { error: field.duplicate("a", "x"), want: 'a: Duplicate value: "x"' },
  { error: field.forbiddenField("a", "no"), want: "a: Forbidden: no" },
  { error: field.fieldNotFound("a", "x"), want: 'a: Not found: "x"' },
  { error: field.tooLong("a", "xxx", 2), want: "a: Too long: must have at most 2 bytes" },
  { error: field.tooMany("a", 5, 3), want: "a: Too many: 5: must have at most 3 items" },
  { error: field.internalField("a", new Error("x")), want: "a: Internal error: x" },
]) {
  test(`writes ${want}`, () => assert.equal(field.formatFieldError(error), want));
}

test("builds paths", () => {
  assert.equal(child(index(child("", "spec", "containers"), 0), "name"), "spec.containers[0].name");
  assert.equal(mapKey("metadata.labels", "app"), "metadata.labels[app]");
});

test("recognises errors by reason, and errors without one by code", () => {
  assert.ok(isNotFound(errors.notFound(pods, "a")));
  assert.ok(!isNotFound(errors.gone("x")));
  assert.ok(!isNotFound(new Error("not found")));
  assert.ok(isConflict(new errors.StatusError({ metadata: {}, code: 409 })));
  assert.ok(!isConflict(errors.alreadyExists(pods, "a")));
  assert.ok(isTooManyRequests(new errors.StatusError({ metadata: {}, reason: "Odd", code: 429 })));
  assert.equal(suggestsDelay(errors.tooManyRequests("slow down", 3)), 3);
  assert.equal(suggestsDelay(errors.notFound(pods, "a")), undefined);
  assert.equal(reasonOf(new Error("x")), "");
});

test("answers an unknown error with 500 and keeps it as the cause", () => {
  const bug = new TypeError("x is undefined");
  assert.equal(errors.statusOf(bug).code, 500);
  assert.equal(errors.internalError(bug).cause, bug);
  assert.ok(isInternalError(errors.internalError(bug)));
  const status = errors.notFound(pods, "a").status;
  assert.equal(errors.statusOf(new errors.StatusError(status)), status);
});

for (const { code, verb, server, want } of [
  { code: 409, verb: "POST", server: "", want: ["AlreadyExists", "the server reported a conflict (post pods a)"] },
  { code: 403, verb: "GET", server: "no", want: ["Forbidden", "no (get pods a)"] },
  ...([500, 502] as const).map((code) => ({
    code,
    verb: "GET",
    server: "bad",
    want: ["InternalError", 'an error on the server ("bad") has prevented the request from succeeding (get pods a)'],
  })),
  {
    code: 418,
    verb: "GET",
    server: "",
    want: ["", "the server responded with the status code 418 but did not return more information (get pods a)"],
  },
] as const) {
  test(`derives a Status from a bare ${code}`, () => {
    const err = errors.genericServerResponse(code, verb, pods, "a", server, 0, true);
    assert.deepEqual([err.reason, err.message], want);
    assert.deepEqual(err.status.details?.causes, [{ reason: "UnexpectedServerResponse", message: server }]);
  });
}

test("untyped JSON is written as Go has it, whatever is in it", () => {
  const value = goUntyped({ b: ["x"], a: { c: 'y"', d: null, e: [] } });
  const nested = 'map[string]interface {}{"c":"y\\"", "d":interface {}(nil), "e":[]interface {}{}}';
  const { message } = errors.invalid({ group: "", kind: "Pod" }, "x", [field.invalidValue("a", value, "bad")]);
  assert.equal(
    message,
    `Pod "x" is invalid: a: Invalid value: map[string]interface {}{"a":${nested}, "b":[]interface {}{"x"}}: bad`,
  );
  assert.deepEqual([goUntyped("x"), goUntyped(1.5), goUntyped(true)], ["x", 1.5, true]);
});
