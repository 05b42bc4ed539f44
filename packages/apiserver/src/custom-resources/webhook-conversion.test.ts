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
