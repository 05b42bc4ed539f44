import assert from "node:assert/strict";
import { test } from "node:test";
import { parseImageReference, withDefaultTag } from "./image-reference.ts";

const digest = `sha256:${"a".repeat(64)}`;
for (const { text, want } of [
  { text: "busybox", want: { domain: "docker.io", path: "library/busybox" } },
  { text: "me/app:1.2", want: { domain: "docker.io", path: "me/app", tag: "1.2" } },
  { text: "registry.example:5000/a/b:v1", want: { domain: "registry.example:5000", path: "a/b", tag: "v1" } },
  { text: "localhost/x", want: { domain: "localhost", path: "x" } },
  { text: `quay.example/x@${digest}`, want: { domain: "quay.example", path: "x", digest } },
  { text: "Upper/Case", want: undefined },
  { text: "a b", want: undefined },
  { text: "x:", want: undefined },
  { text: "x@sha256:short", want: undefined },
  { text: "", want: undefined },
  { text: `${"a/".repeat(200)}a`, want: undefined },
]) {
  test(`${JSON.stringify(text.slice(0, 40))} is ${want === undefined ? "no image" : "an image"}`, () =>
    assert.deepEqual(parseImageReference(text), want));
}

test("an image without tag and digest is the latest", () => {
  assert.deepEqual(["busybox", "busybox:1", `busybox@${digest}`, "r.example:5000/x", "-"].map(withDefaultTag), [
    "busybox:latest",
    "busybox:1",
    `busybox@${digest}`,
    "r.example:5000/x:latest",
    undefined,
  ]);
});
