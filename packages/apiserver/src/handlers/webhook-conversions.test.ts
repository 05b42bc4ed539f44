import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { withConversions } from "./webhook-conversions.ts";

const named = (name: string): KubeObject => ({ apiVersion: "v1", kind: "A", metadata: { name } });

test("each object is requested once in each version, and the computation has them all in the end", async () => {
  const requests: string[] = [];
  const convert = async (object: KubeObject, apiVersion: string): Promise<KubeObject> => {
    requests.push(`${object.metadata.name} ${apiVersion}`);
    return { ...object, apiVersion };
  };
  const versions = await withConversions(convert, (converted) => {
    const [a, b] = [converted(named("a"), "v2"), converted(named("b"), "v2")];
    a.metadata.name = "spoilt"; // the computation owns the result
    return [converted(named("a"), "v2").metadata.name, b.apiVersion, converted(named("a"), "v3").apiVersion];
  });
  assert.deepEqual(versions, ["a", "v2", "v3"]);
  assert.deepEqual(requests, ["a v2", "b v2", "a v3"]);
});

test("a failed conversion fails the computation, and a computation that keeps requesting conversions ends with an error", async () => {
  const failing = (): Promise<KubeObject> => Promise.reject(new Error("away"));
  await assert.rejects(
    withConversions(failing, (converted) => converted(named("a"), "v2")),
    /away/,
  );
  let n = 0;
  const restless = withConversions(
    async (object) => object,
    (converted) => converted(named(`${n++}`), "v2"),
  );
  await assert.rejects(restless, /not known yet/);
});

test("changing a converted object changes neither the original nor later conversions", async () => {
  const sent: KubeObject[] = [];
  const convert = async (object: KubeObject, apiVersion: string): Promise<KubeObject> => {
    sent.push(object);
    object.metadata.name = "spoilt by the webhook's client";
    return { ...named("b"), apiVersion };
  };
  const mine = named("a");
  const names = await withConversions(convert, (converted) => {
    const first = converted(mine, "v2");
    first.metadata.name = "spoilt";
    return [mine.metadata.name, converted(mine, "v2").metadata.name];
  });
  assert.deepEqual([names, sent.length], [["a", "b"], 1]);
});
