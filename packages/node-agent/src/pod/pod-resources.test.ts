import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aContainer, aNodePod } from "../testing/builders.ts";
import type { AnyContainer } from "./pod.ts";
import { podResources, quantityOf, sumOverPod } from "./pod-resources.ts";

type Amounts = Record<string, string>;
/** A container with these requests, and limits ten times as high. */
const asking = (requests: Amounts) => {
  const limits = Object.fromEntries(Object.entries(requests).map(([name, text]) => [name, text.replace(/^\d+/, "$&0")]));
  return aContainer({ resources: { requests, limits } });
};

for (const { name, spec, requests, limits } of [
  {
    name: "are the sum over its containers",
    spec: { containers: [asking({ cpu: "1" }), asking({ cpu: "2", memory: "1Gi" })] },
    requests: { cpu: "3", memory: "1Gi" },
    limits: { cpu: "30", memory: "10Gi" },
  },
  {
    name: "are those of the largest init container where that asks for more, resource by resource",
    spec: {
      initContainers: [asking({ cpu: "1", memory: "4Gi" }), asking({ cpu: "4" }), asking({ cpu: "2", "example.com/gpu": "1" })],
      containers: [asking({ cpu: "3", memory: "5Gi" })],
    },
    requests: { cpu: "4", memory: "5Gi", "example.com/gpu": "1" },
    limits: { cpu: "40", memory: "50Gi", "example.com/gpu": "10" },
  },
  {
    name: "include its overhead, which is no limit of a resource without one",
    spec: {
      overhead: { cpu: "2", memory: "1Gi", "example.com/gpu": "1" },
      initContainers: [asking({ cpu: "7" })],
      containers: [asking({ cpu: "1" }), aContainer({ resources: { limits: { "example.com/gpu": "0" } } })],
    },
    requests: { cpu: "9", memory: "1Gi", "example.com/gpu": "1" },
    limits: { cpu: "72", "example.com/gpu": "0" },
  },
] as { name: string; spec: Partial<PodSpec>; requests: Amounts; limits: Amounts }[]) {
  test(`the resources of a pod ${name}`, () => {
    const of = (kind: "requests" | "limits") =>
      Object.fromEntries([...podResources(aNodePod(spec), kind)].map(([resource, amount]) => [resource, amount.toString()]));
    assert.deepEqual([of("requests"), of("limits")], [requests, limits]);
  });
}

test("a missing or malformed quantity, and one that the list inherits, is zero", () => {
  const list = { cpu: "1500m", memory: "much" };
  assert.deepEqual(
    ["cpu", "memory", "pods", "constructor"].map((name) => quantityOf(list, name).milliValue()),
    [1500, 0, 0, 0],
  );
  assert.equal(quantityOf(undefined, "cpu").isZero, true);
});

test("counts of a pod are summed over its containers, or the largest init container's", () => {
  const count = (a: number, b = 0) => aContainer({ resources: { limits: { a: String(a), b: String(b) } } });
  const pod = aNodePod({ initContainers: [count(2, 9), count(5)], containers: [count(1, 3), count(3, 4)] });
  const of = (container: AnyContainer) => {
    const limits = "resources" in container ? container.resources?.limits : undefined;
    return new Map(Object.entries(limits ?? {}).map(([name, text]) => [name, Number(text)]));
  };
  assert.deepEqual(Object.fromEntries(sumOverPod(pod, of)), { a: 5, b: 9 });
});
