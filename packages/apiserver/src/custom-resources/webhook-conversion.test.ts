import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { converterOf } from "./webhook-conversion.ts";

test("every object of a webhook's answer is checked, not only the first", async () => {
  const webhook = { clientConfig: { url: "https://webhook" }, conversionReviewVersions: ["v1"] };
  const answer = (kinds: readonly string[]) =>
    converterOf(
      { strategy: "Webhook", webhook },
      async (_, { body }) => {
        const { apiVersion, kind, request } = JSON.parse(body);
        const convertedObjects = (request.objects as KubeObject[]).map((object, i) => ({
          ...{ ...object, apiVersion: "g/v2", kind: kinds[i] },
        }));
        const response = { uid: request.uid, result: { status: "Success" }, convertedObjects };
        return Buffer.from(JSON.stringify({ apiVersion, kind, response }));
      },
      new Turns(),
    )(
      ["a", "b"].map((name) => ({ apiVersion: "g/v1", kind: "A", metadata: { name } })),
      "g/v2",
    );
  assert.deepEqual(
    (await answer(["A", "A"])).map(({ apiVersion, metadata }) => [apiVersion, metadata.name]),
    [
      ["g/v2", "a"],
      ["g/v2", "b"],
    ],
  );
  await assert.rejects(async () => answer(["A", "B"]), /invalid object at index 1: invalid kind \(expected A, received B\)/);
});

/** Converts `objects` to g/v2 by a webhook that answers with what `change` makes of them. */
function converting(objects: readonly KubeObject[], change: (converted: KubeObject[]) => unknown, more: object = {}) {
  const webhook = { clientConfig: { url: "https://webhook" }, conversionReviewVersions: ["v1"] };
  const convert = converterOf(
    { strategy: "Webhook", webhook },
    async (_, { body }) => {
      const { apiVersion, kind, request } = JSON.parse(body);
      const convertedObjects = change((request.objects as KubeObject[]).map((object) => ({ ...object, apiVersion: "g/v2" })));
      const response = { uid: request.uid, result: { status: "Success" }, convertedObjects, ...more };
      return Buffer.from(JSON.stringify({ apiVersion, kind, response }));
    },
    new Turns(),
  );
  return Promise.resolve(convert(objects, "g/v2"));
}

const anObject = (name: string, version = "v1"): KubeObject => ({
  ...{ apiVersion: `g/${version}`, kind: "A", metadata: { name, namespace: "n", uid: `uid-${name}`, labels: { was: name } } },
});

test("objects that have the version already are not sent, and all keep their places", async () => {
  let sent: readonly KubeObject[] = [];
  const objects = [anObject("a", "v2"), anObject("b"), anObject("c", "v2"), anObject("d")];
  const converted = await converting(objects, (shown) => {
    sent = shown;
    return shown;
  });
  assert.deepEqual(
    [sent, converted].map((list) => list.map(({ metadata }) => metadata.name)),
    [
      ["b", "d"],
      ["a", "b", "c", "d"],
    ],
  );
  assert.equal(converted[0], objects[0]);
});

for (const { what, change, why } of [
  { what: "one object less", change: (all: KubeObject[]) => all.slice(1), why: /returned 1 objects, expected 2/ },
  { what: "one object more", change: (all: KubeObject[]) => [...all, anObject("c")], why: /returned 3 objects, expected 2/ },
  ...(["name", "namespace", "uid"] as const).map((field) => ({
    what: `another ${field}`,
    change: ([a, b]: KubeObject[]) => [a, { ...b, metadata: { ...b?.metadata, [field]: "other" } }],
    why: /must have the same (name: b|namespace: n|UID: uid-b) != other/,
  })),
  {
    what: "an annotation that is no text",
    change: ([a, b]: KubeObject[]) => [a, { ...b, metadata: { ...b?.metadata, annotations: { x: "y", z: 1 } } }],
    why: /metadata\.annotations\[z\] must be a string/,
  },
]) {
  test(`an answer with ${what} is an error`, async () => {
    await assert.rejects(converting([anObject("a"), anObject("b")], change as never), why);
  });
}

test("a webhook can change and remove labels and annotations, and nothing else of the metadata", async () => {
  const change = ([a, b]: KubeObject[]) => [
    { ...a, metadata: { ...a?.metadata, labels: undefined, annotations: { x: "y" }, generation: 7, finalizers: ["f"] } },
    b,
  ];
  const [a, b] = await converting([anObject("a"), anObject("b")], change);
  assert.deepEqual(a?.metadata, { name: "a", namespace: "n", uid: "uid-a", annotations: { x: "y" } });
  assert.deepEqual(b?.metadata, anObject("b").metadata);
});

test("an answer without the uid of its question, or with another one, is an error", async () => {
  for (const uid of [undefined, "other"]) {
    const answer = converting([anObject("a")], (all) => all, { uid });
    await assert.rejects(answer, new RegExp(`expected response.uid="[^"]+", got "${uid ?? ""}"$`));
  }
});
