import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isSignificant } from "./significant.ts";

const [first, second] = [
  { name: "a", image: "x" },
  { name: "b", image: "x" },
];
const seccomp = (key: string, value: string) => ({
  [`${key === "pod" ? "" : "container."}seccomp.security.alpha.kubernetes.io/${key}`]: value,
});
const aPod = (spec: object, annotations: Record<string, string> = {}) => ({
  metadata: { name: "p", annotations },
  spec: { containers: [first], ...spec } as PodSpec,
});

for (const { name, before = aPod({}), after, want } of [
  { name: "nothing", after: aPod({}), want: false },
  { name: "another annotation", after: aPod({}, { other: "x" }), want: false },
  { name: "a security context", after: aPod({ securityContext: { runAsUser: 5 } }), want: false },
  { name: "the pod's seccomp annotation", after: aPod({}, seccomp("pod", "unconfined")), want: true },
  { name: "a container's seccomp annotation", after: aPod({}, seccomp("a", "unconfined")), want: true },
  { name: "the seccomp annotation of a container that is not there", after: aPod({}, seccomp("z", "unconfined")), want: false },
  { name: "an image", after: aPod({ containers: [{ ...first, image: "y" }] }), want: true },
  {
    name: "the second container's image",
    before: aPod({ containers: [first, second] }),
    after: aPod({ containers: [first, { ...second, image: "y" }] }),
    want: true,
  },
  { name: "a container less", before: aPod({ containers: [first, second] }), after: aPod({}), want: true },
  { name: "an init container more", after: aPod({ initContainers: [second] }), want: true },
  {
    name: "an init container's image",
    before: aPod({ initContainers: [second] }),
    after: aPod({ initContainers: [{ ...second, image: "y" }] }),
    want: true,
  },
  { name: "an ephemeral container more", after: aPod({ ephemeralContainers: [second] }), want: true },
  {
    name: "the order of ephemeral containers",
    before: aPod({ ephemeralContainers: [{ ...first, image: "e" }, second] }),
    after: aPod({ ephemeralContainers: [second, { ...first, image: "e" }] }),
    want: false,
  },
  {
    name: "an ephemeral container's image",
    before: aPod({ ephemeralContainers: [second] }),
    after: aPod({ ephemeralContainers: [{ ...second, image: "y" }] }),
    want: true,
  },
  {
    name: "an ephemeral container to the second of its name",
    before: aPod({ ephemeralContainers: [second, { ...second, image: "y" }] }),
    after: aPod({ ephemeralContainers: [{ ...second, image: "y" }] }),
    want: true,
  },
]) {
  test(`an update of ${name} is ${want ? "" : "not "}evaluated`, () => assert.equal(isSignificant(after, before), want));
}
