import assert from "node:assert/strict";
import { test } from "node:test";
import { Quantity } from "../meta/quantity.ts";
import * as field from "./field-error.ts";
import { child, index, mapKey } from "./field-error.ts";
import { GoText, goStrings, goSyntax, goUntyped } from "./go-syntax.ts";
import { causesOf, messageOf } from "./message.ts";
import * as predicates from "./predicates.ts";
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
  {
    err: errors.generateNameConflict(deployments, "web-x", 1),
    want: {
      message: 'deployments.apps "web-x" already exists, the server was not able to generate a unique name for the object',
      reason: "AlreadyExists",
      details: { name: "web-x", group: "apps", kind: "deployments", retryAfterSeconds: 1 },
      code: 409,
    },
  },
  {
    err: errors.forbidden(deployments, "web", "no"),
    want: {
      message: 'deployments.apps "web" is forbidden: no',
      reason: "Forbidden",
      details: { name: "web", group: "apps", kind: "deployments" },
      code: 403,
    },
  },
  {
    err: errors.applyConflict([{ reason: "FieldManagerConflict" }], "conflict"),
    want: {
      message: "conflict",
      reason: "Conflict",
      details: { causes: [{ reason: "FieldManagerConflict" }] },
      code: 409,
    },
  },
  {
    err: errors.timeout("too slow", 3),
    want: { message: "Timeout: too slow", reason: "Timeout", details: { retryAfterSeconds: 3 }, code: 504 },
  },
  {
    err: errors.tooManyRequests("slow down", 1),
    want: { message: "slow down", reason: "TooManyRequests", details: { retryAfterSeconds: 1 }, code: 429 },
  },
  {
    err: errors.serviceUnavailable("starting", 2),
    want: { message: "starting", reason: "ServiceUnavailable", details: { retryAfterSeconds: 2 }, code: 503 },
  },
  { err: errors.serviceUnavailable("down"), want: { message: "down", reason: "ServiceUnavailable", code: 503 } },
  { err: errors.gone("gone"), want: { message: "gone", reason: "Gone", code: 410 } },
  { err: errors.badRequest("bad"), want: { message: "bad", reason: "BadRequest", code: 400 } },
  {
    err: errors.unsupportedMediaType("text/x"),
    want: { message: "text/x", reason: "UnsupportedMediaType", code: 415 },
  },
  { err: errors.notAcceptable("text/y"), want: { message: "text/y", reason: "NotAcceptable", code: 406 } },
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
  { error: field.required(""), want: "<nil>: Required value" },
  { error: field.notSupported("a", "x", []), want: 'a: Unsupported value: "x"' },
  { error: field.tooMany("a", 5, 0), want: "a: Too many: 5: must have at most 0 items" },
  { error: field.tooMany("a", 5, -1), want: "a: Too many: 5: has too many items" },
  { error: field.invalidValue("a", undefined, "bad"), want: 'a: Invalid value: "null": bad' },
  { error: field.invalidValue("a", new GoText("null"), "bad"), want: 'a: Invalid value: "null": bad' },
  { error: field.invalidValue("a", Quantity.parse("1500m"), ""), want: "a: Invalid value: 1500m" },
  { error: field.invalidValue("a", ["x", 1], "bad"), want: 'a: Invalid value: []interface {}{"x", 1}: bad' },
]) {
  test(`writes ${want}`, () => assert.equal(field.formatFieldError(error), want));
}

test("equal errors are shown once, and stay causes of their own", () => {
  const list = [field.required("a"), field.required("a"), field.required("b")];
  assert.equal(field.formatFieldErrors(list), "[a: Required value, b: Required value]");
  assert.equal(field.formatFieldErrors(list.slice(0, 2)), "a: Required value");
  assert.equal(errors.invalid({ group: "", kind: "Pod" }, "x", list).status.details?.causes?.length, 3);
  assert.equal(field.formatFieldErrors([]), "");
});

test("a cause without a field has none", () => {
  const { status } = errors.invalid({ group: "", kind: "Pod" }, "x", [field.required("")]);
  assert.deepEqual(status.details?.causes, [{ reason: "FieldValueRequired", message: "Required value" }]);
});

test("a value's text shows a thousand items, and how many more there are", () => {
  const items = (count: number): string[] => Array.from({ length: count }, (_, i) => `${i}`);
  assert.ok(goSyntax(items(1000)).endsWith(', "999"}'));
  assert.ok(goSyntax(items(1002)).endsWith(', "999", and 2 more}'));
  assert.ok(goStrings("T", items(1001)).text.endsWith(', "999", and 1 more}'));
  assert.equal(goStrings("core.IPFamily", undefined).text, "[]core.IPFamily(nil)");
  assert.equal(goStrings("core.IPFamily", []).text, "[]core.IPFamily{}");
  assert.equal(goSyntax({ b: undefined, a: "x" }), 'map[string]string{"a":"x"}');
  assert.equal(goSyntax([null]), "[]interface {}{interface {}(nil)}");
});

test("builds paths", () => {
  assert.equal(child(index(child("", "spec", "containers"), 0), "name"), "spec.containers[0].name");
  assert.equal(mapKey("metadata.labels", "app"), "metadata.labels[app]");
});

test("recognises errors by reason, and errors without one by code", () => {
  const { isConflict, isNotFound, isTooManyRequests, reasonOf } = predicates;
  assert.ok(isNotFound(errors.notFound(pods, "a")));
  assert.ok(!isNotFound(errors.gone("x")));
  assert.ok(!isNotFound(new Error("not found")));
  assert.ok(isConflict(new errors.StatusError({ metadata: {}, code: 409 })));
  assert.ok(!isConflict(errors.alreadyExists(pods, "a")));
  assert.ok(isTooManyRequests(new errors.StatusError({ metadata: {}, reason: "Odd", code: 429 })));
  assert.ok(!isTooManyRequests(errors.serviceUnavailable("x")));
  assert.equal(reasonOf(new Error("x")), "");
});

for (const [name, reason, code, byCode] of [
  ["isNotFound", "NotFound", 404, true],
  ["isAlreadyExists", "AlreadyExists", 409, false],
  ["isConflict", "Conflict", 409, true],
  ["isInvalid", "Invalid", 422, true],
  ["isGone", "Gone", 410, true],
  ["isResourceExpired", "Expired", 410, false],
  ["isForbidden", "Forbidden", 403, true],
  ["isTimeout", "Timeout", 504, true],
  ["isServerTimeout", "ServerTimeout", 500, false],
  ["isBadRequest", "BadRequest", 400, true],
  ["isMethodNotSupported", "MethodNotAllowed", 405, true],
  ["isRequestEntityTooLarge", "RequestEntityTooLarge", 413, true],
  ["isInternalError", "InternalError", 500, true],
  ["isTooManyRequests", "TooManyRequests", 429, true],
] as const) {
  test(`${name} is of the reason ${reason}${byCode ? ` or a bare ${code}` : ", never of a bare code"}`, () => {
    const status = (about: { reason?: string; code?: number }) => new errors.StatusError({ metadata: {}, ...about });
    const matches = predicates[name];
    assert.equal(matches(status({ reason, code: 418 })), true);
    assert.equal(matches(status({ code })), byCode);
    assert.equal(matches(status({ reason: "Odd", code })), name === "isTooManyRequests");
    assert.equal(matches(status({ reason: "Odd", code: 418 })), false);
    assert.equal(matches(status({ code: 418 })), false);
    assert.equal(matches(Object.assign(new Error("x"), { reason, code })), false);
  });
}

test("the server suggests a delay for what it could not do in time, and for too many requests", () => {
  for (const [err, want] of [
    [errors.tooManyRequests("slow down", 3), 3],
    [errors.tooManyRequests("slow down", 0), 0],
    [errors.serverTimeout(pods, "list", 2), 2],
    [errors.serverTimeout(pods, "list", 0), 0],
    [errors.timeout("x", 4), 4],
    [errors.timeout("x", 0), undefined],
    [errors.serviceUnavailable("x", 5), undefined],
    [errors.notFound(pods, "a"), undefined],
    [new Error("x"), undefined],
  ] as const) {
    assert.equal(predicates.suggestsDelay(err), want, err.message);
  }
});

test("a cause is found among all of a Status", () => {
  const err = new errors.StatusError({ metadata: {}, details: { causes: [{ reason: "A" }, { reason: "B" }] } });
  assert.deepEqual(
    ["A", "B", "C"].map((cause) => predicates.hasCause(err, cause)),
    [true, true, false],
  );
  assert.equal(predicates.hasCause(errors.unauthorized(), "A"), false);
  assert.equal(predicates.hasCause(new Error("A"), "A"), false);
});

test("a body is a failure unless it is of another kind or says Success", () => {
  const failed = { kind: "Status", code: 404 };
  assert.equal(errors.failureIn(failed), failed);
  for (const body of [{ kind: "Status", status: "Success" }, { kind: "Pod", status: "Failure" }, null, "Status", undefined]) {
    assert.equal(errors.failureIn(body), undefined);
  }
});

test("a Status without code, reason and message is an error of the server", () => {
  const bare = new errors.StatusError({ metadata: {} });
  assert.deepEqual([bare.code, bare.reason, bare.message, bare.name], [500, "", "", "StatusError"]);
});

test("an error's text has those of its causes, down to values that are no errors", () => {
  const err = new Error("a", { cause: new Error("b", { cause: "c" }) });
  assert.deepEqual([messageOf(err), causesOf(err), causesOf("x"), messageOf(undefined)], ["a", "a: b: c", "x", "undefined"]);
});

test("answers an unknown error with 500 and keeps it as the cause", () => {
  const bug = new TypeError("x is undefined");
  assert.equal(errors.statusOf(bug).code, 500);
  assert.equal(errors.internalError(bug).cause, bug);
  const status = errors.notFound(pods, "a").status;
  assert.equal(errors.statusOf(new errors.StatusError(status)), status);
});

for (const { code, verb, server, want } of [
  { code: 409, verb: "POST", server: "", want: ["AlreadyExists", "the server reported a conflict (post pods a)"] },
  { code: 409, verb: "PUT", server: "", want: ["Conflict", "the server reported a conflict (put pods a)"] },
  { code: 403, verb: "GET", server: "no", want: ["Forbidden", "no (get pods a)"] },
  {
    code: 404,
    verb: "GET",
    server: "",
    want: ["NotFound", "the server could not find the requested resource (get pods a)"],
  },
  {
    code: 400,
    verb: "GET",
    server: "",
    want: ["BadRequest", "the server rejected our request for an unknown reason (get pods a)"],
  },
  {
    code: 401,
    verb: "GET",
    server: "",
    want: ["Unauthorized", "the server has asked for the client to provide credentials (get pods a)"],
  },
  {
    code: 405,
    verb: "GET",
    server: "",
    want: ["MethodNotAllowed", "the server does not allow this method on the requested resource (get pods a)"],
  },
  ...(["", "unknown"] as const).map((server) => ({
    code: 406,
    verb: "GET",
    server,
    want: ["NotAcceptable", "the server was unable to respond with a content type that the client supports (get pods a)"],
  })),
  { code: 406, verb: "GET", server: "only JSON", want: ["NotAcceptable", "only JSON (get pods a)"] },
  { code: 415, verb: "PUT", server: "only JSON", want: ["UnsupportedMediaType", "only JSON (put pods a)"] },
  {
    code: 422,
    verb: "PUT",
    server: "",
    want: ["Invalid", "the server rejected our request due to an error in our request (put pods a)"],
  },
  {
    code: 429,
    verb: "GET",
    server: "",
    want: ["TooManyRequests", "the server has received too many requests and has asked us to try again later (get pods a)"],
  },
  {
    code: 503,
    verb: "GET",
    server: "",
    want: ["ServiceUnavailable", "the server is currently unable to handle the request (get pods a)"],
  },
  {
    code: 504,
    verb: "GET",
    server: "",
    want: [
      "Timeout",
      "the server was unable to return a response in the time allotted, but may still be processing the request (get pods a)",
    ],
  },
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

test("a Status from a bare code tells its resource, name and delay only where they are known", () => {
  const bare = errors.genericServerResponse(503, "GET", { group: "", resource: "" }, "", "x", 7, false);
  assert.equal(bare.message, "the server is currently unable to handle the request");
  assert.deepEqual(bare.status.details, { retryAfterSeconds: 7 });
  const list = errors.genericServerResponse(404, "GET", deployments, "", "", 0, false);
  assert.equal(list.message, "the server could not find the requested resource (get deployments.apps)");
  assert.deepEqual(list.status.details, { group: "apps", kind: "deployments" });
});

test("an error that is no Status upstream has a code and a text only", () => {
  const cause = new Error("x");
  const err = errors.plainError("broken", { cause });
  assert.deepEqual([err.status, err.cause], [{ ...failure, message: "broken", code: 500 }, cause]);
  assert.ok(!("cause" in errors.plainError("broken")));
});

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
