import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
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

/** Converts one object to g/v2 by a webhook of these review versions. @param answered what it makes of its answer to the review */
function reviewing(versions: readonly string[] | undefined, answered: (review: Review) => unknown) {
  const clientConfig = { url: "https://webhook" };
  const webhook = { clientConfig, ...(versions && { conversionReviewVersions: [...versions] }) };
  const asked: { review: Review; timeoutSeconds: number; config: object }[] = [];
  const convert = converterOf(
    { strategy: "Webhook", webhook } as Parameters<typeof converterOf>[0],
    async (config, { body, timeoutSeconds }) => {
      const review = JSON.parse(body) as Review;
      asked.push({ review, timeoutSeconds, config });
      const answer = answered(review);
      return Buffer.from(typeof answer === "string" ? answer : JSON.stringify(answer));
    },
    new Turns(),
  );
  return { asked, converted: async () => convert([anObject("a")], "g/v2") };
}

interface Review {
  readonly kind: string;
  readonly apiVersion: string;
  readonly request: { readonly uid: string; readonly desiredAPIVersion: string; readonly objects: KubeObject[] };
}

const succeeded = ({ apiVersion, kind, request }: Review, more: object = {}) => ({
  ...{ apiVersion, kind },
  response: {
    ...{ uid: request.uid, result: { status: "Success" } },
    convertedObjects: request.objects.map((object) => ({ ...object, apiVersion: request.desiredAPIVersion })),
    ...more,
  },
});

for (const { versions, want } of [
  { versions: ["v1"], want: "v1" },
  { versions: ["v2", "v1beta1", "v1"], want: "v1beta1" },
  { versions: ["v1", "v1beta1"], want: "v1" },
]) {
  test(`a webhook that takes reviews of ${versions} is asked in ${want}, with half a minute to answer`, async () => {
    const { asked, converted } = reviewing(versions, succeeded);
    assert.equal((await converted())[0]?.apiVersion, "g/v2");
    hasFields(asked, [
      {
        review: { kind: "ConversionReview", apiVersion: `apiextensions.k8s.io/${want}`, request: { desiredAPIVersion: "g/v2" } },
        ...{ timeoutSeconds: 30, config: { url: "https://webhook" } },
      },
    ]);
  });
}

for (const versions of [["v2"], [], undefined]) {
  test(`a webhook that takes reviews of ${versions?.join() || "no version"} is not asked`, async () => {
    const { asked, converted } = reviewing(versions, succeeded);
    await assert.rejects(converted(), /^StatusError: no supported conversion review versions$/);
    assert.deepEqual(asked, []);
  });
}

const subject = "conversion webhook for g/v1, Kind=A";
for (const { what, answer, why } of [
  {
    what: "a failure with a message",
    answer: (review: Review) => succeeded(review, { result: { status: "Failure", message: "not today" } }),
    why: `${subject} failed: not today`,
  },
  {
    what: "a failure with an empty message",
    answer: (review: Review) => succeeded(review, { result: { status: "Failure", message: "" } }),
    why: `${subject} failed: response.result.status was 'Failure', not 'Success'`,
  },
  {
    what: "no result",
    answer: (review: Review) => succeeded(review, { result: undefined }),
    why: `${subject} failed: response.result.status was '', not 'Success'`,
  },
  {
    what: "no objects",
    answer: (review: Review) => succeeded(review, { convertedObjects: undefined }),
    why: `${subject} returned 0 objects, expected 1`,
  },
  {
    what: "no response",
    answer: ({ apiVersion, kind }: Review) => ({ apiVersion, kind }),
    why: `${subject} failed: no response provided`,
  },
  {
    what: "another version of the review",
    answer: (review: Review) => ({ ...succeeded(review), apiVersion: "apiextensions.k8s.io/v1beta1" }),
    why: `${subject} failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1beta1, Kind=ConversionReview`,
  },
  {
    what: "no version of the review",
    answer: (review: Review) => ({ ...succeeded(review), apiVersion: undefined, kind: undefined }),
    why: `${subject} failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got , Kind=`,
  },
  {
    what: "another kind",
    answer: (review: Review) => ({ ...succeeded(review), kind: "Review" }),
    why: `${subject} failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Review`,
  },
  { what: "a list", answer: () => [], why: `${subject} failed: the response is not a JSON object` },
  { what: "no JSON", answer: () => "{", why: `${subject} failed: unexpected end of JSON input` },
  {
    what: "an object of another version",
    answer: (review: Review) => succeeded(review, { convertedObjects: review.request.objects }),
    why: `${subject} returned invalid object at index 0: invalid groupVersion (expected g/v2, received g/v1)`,
  },
  {
    what: "no object",
    answer: (review: Review) => succeeded(review, { convertedObjects: [1] }),
    why: `${subject} returned invalid object at index 0: it is not an object`,
  },
  ...[
    { metadata: undefined, why: "missing metadata in converted object" },
    { metadata: null, why: "invalid metadata in converted object" },
    { metadata: { ...anObject("a").metadata, labels: [] }, why: "invalid metadata.labels in converted object" },
    { metadata: { ...anObject("a").metadata, labels: { a: 1 } }, why: "metadata.labels[a] must be a string in converted object" },
  ].map(({ metadata, why }) => ({
    what: `metadata that is ${JSON.stringify(metadata)}`,
    answer: (review: Review) => succeeded(review, { convertedObjects: [{ apiVersion: "g/v2", kind: "A", metadata }] }),
    why: `${subject} returned invalid metadata: ${why}`,
  })),
  {
    what: "a label that is none",
    answer: (review: Review) =>
      succeeded(review, {
        convertedObjects: [{ apiVersion: "g/v2", kind: "A", metadata: { ...anObject("a").metadata, labels: { "-": "x" } } }],
      }),
    why: /returned invalid metadata: metadata\.labels: Invalid value: "-": /,
  },
] as { what: string; answer: (review: Review) => unknown; why: string | RegExp }[]) {
  test(`an answer with ${what} is a failure of the server`, async () => {
    await assert.rejects(reviewing(["v1"], answer).converted(), ({ message, code }: Error & { code: number }) => {
      assert.equal(code, 500);
      if (typeof why === "string") assert.equal(message, why);
      else assert.match(message, why);
      return true;
    });
  });
}

test("an answer in v1beta1 may have another uid and kind", async () => {
  const { converted } = reviewing(["v1beta1"], (review) => ({
    ...succeeded(review, { uid: "other" }),
    kind: "",
    apiVersion: "",
  }));
  assert.equal((await converted())[0]?.apiVersion, "g/v2");
});

test("labels that a webhook sets to null are removed", async () => {
  const [a] = await converting([anObject("a")], ([object]) => [{ ...object, metadata: { ...object?.metadata, labels: null } }]);
  assert.deepEqual(a?.metadata, { name: "a", namespace: "n", uid: "uid-a" });
});

test("without a webhook an object is renamed", () => {
  for (const conversion of [undefined, { strategy: "None" }, { strategy: "Webhook" }]) {
    const convert = converterOf(conversion as never, () => assert.fail("there is no webhook"), new Turns());
    assert.deepEqual(convert([anObject("a")], "g/v2"), [anObject("a", "v2")]);
  }
});
