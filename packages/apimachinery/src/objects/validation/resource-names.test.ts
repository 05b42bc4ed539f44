import assert from "node:assert/strict";
import { test } from "node:test";
import { isExtendedResource, isNativeResource } from "./resource-names.ts";

for (const { name, native, extended } of [
  { name: "cpu", native: true, extended: false },
  { name: "hugepages-2Mi", native: true, extended: false },
  { name: "kubernetes.io/x", native: true, extended: false },
  { name: "sub.kubernetes.io/x", native: true, extended: false },
  { name: "mykubernetes.io/x", native: true, extended: false },
  { name: "example.com/gpu", native: false, extended: true },
  { name: "requests.example.com/gpu", native: false, extended: false },
  { name: "example.com/a/b", native: false, extended: false },
  { name: "example.com/Not a name", native: false, extended: false },
  { name: "/gpu", native: false, extended: false },
  { name: `example.com/${"x".repeat(64)}`, native: false, extended: false },
])
  test(`${name} is ${native ? "Kubernetes' own" : extended ? "an extended resource" : "neither"}`, () =>
    assert.deepEqual([isNativeResource(name), isExtendedResource(name)], [native, extended]));
