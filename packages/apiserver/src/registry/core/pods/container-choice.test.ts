import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { chooseContainer } from "./container-choice.ts";

const named = (...names: string[]) => names.map((name) => ({ name }));
const podOf = (containers: string[], initContainers: string[] = [], ephemeralContainers: string[] = []): Pod => ({
  metadata: { name: "p" },
  spec: {
    containers: named(...containers),
    ...(initContainers.length > 0 && { initContainers: named(...initContainers) }),
    ...(ephemeralContainers.length > 0 && { ephemeralContainers: named(...ephemeralContainers) }),
  },
});
const every = podOf(["a", "b"], ["i", "j"], ["e"]);

for (const requested of ["a", "b", "i", "j", "e"]) {
  test(`container ${requested} may be named, of whichever list`, () =>
    assert.equal(chooseContainer(every, requested), requested));
}

test("the only container need not be named, whatever else there is", () => {
  assert.equal(chooseContainer(podOf(["a"], ["i"], ["e"]), ""), "a");
});

const must = "a container name must be specified for pod p";
for (const { name, pod, requested = "", want } of [
  { name: "an unknown one", pod: every, requested: "x", want: "container x is not valid for pod p" },
  { name: "none of none", pod: podOf([]), want: must },
  { name: "none of two", pod: podOf(["a", "b"]), want: `${must}, choose one of: [a b]` },
  {
    name: "none of two beside init containers",
    pod: podOf(["a", "b"], ["i", "j"]),
    want: `${must}, choose one of: [a b] or one of the init containers: [i j]`,
  },
  {
    name: "none of two beside one init container",
    pod: podOf(["a", "b"], ["i"]),
    want: `${must}, choose one of: [a b] or one of the init containers: [i]`,
  },
  {
    name: "none of two beside one for debugging",
    pod: podOf(["a", "b"], [], ["e"]),
    want: `${must}, choose one of: [a b] or one of the ephemeral containers: [e]`,
  },
  {
    name: "none of all kinds",
    pod: every,
    want: `${must}, choose one of: [a b] or one of the init containers: [i j] or one of the ephemeral containers: [e]`,
  },
]) {
  test(`a request for ${name} is bad and says what there is`, () => {
    assert.throws(
      () => chooseContainer(pod, requested),
      (err) => err instanceof StatusError && err.status.code === 400 && err.message === want,
    );
  });
}
