import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "./document.ts";
import { body, pathItem, pathParameter, query, queryParameters } from "./parameters.ts";

test("parameters that all operations have belong to the path; bodies, and others of the same name, to the operation", () => {
  const name = pathParameter("name", "a name");
  const pretty = query("pretty", "string", "indented");
  const named = query("name", "string", "not in the path");
  const posted = body({ type: "object" }, true);
  const of = (...parameters: Operation["parameters"] & {}) => ({ operationId: "x", parameters }) as unknown as Operation;
  assert.deepEqual(pathItem({ get: of(pretty, name, named, posted), delete: of(posted, pretty, name) }), {
    get: { operationId: "x", parameters: [posted, named] },
    delete: { operationId: "x", parameters: [posted] },
    parameters: [name, pretty],
  });
  assert.deepEqual(pathItem({ get: of(), put: of(name) }), {
    get: { operationId: "x" },
    put: { operationId: "x", parameters: [name] },
  });
});

test("only a required body says so", () => {
  const schema = { type: "object" };
  assert.deepEqual(body(schema, true), { name: "body", in: "body", required: true, schema });
  assert.deepEqual(body(schema, false), { name: "body", in: "body", schema });
});

test("the query has the fields of text, numbers and truth, also several of them, but no kind, no times and no objects", () => {
  assert.deepEqual(
    queryParameters("meta/v1.DeleteOptions", ["orphanDependents"]).map(({ name, type }) => `${name} ${type}`),
    ["gracePeriodSeconds integer", "propagationPolicy string", "dryRun string"],
  );
  const names = queryParameters("meta/v1.ObjectMeta").map(({ name }) => name);
  assert.ok(names.includes("finalizers"));
  for (const other of ["ownerReferences", "creationTimestamp", "labels"]) assert.ok(!names.includes(other), other);
  assert.deepEqual(queryParameters("meta/v1.None"), []);
});
