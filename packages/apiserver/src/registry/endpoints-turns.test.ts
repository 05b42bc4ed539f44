/** Lists of addresses of the maximum size are validated in slices. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { endpointsStrategy } from "./core/endpoints/strategy.ts";
import { endpointSliceStrategy } from "./discovery/endpointslices/strategy.ts";
import type { Strategy, StrategyContext } from "./generic/strategy.ts";

const addresses = (count: number, from: number): string[] =>
  Array.from(
    { length: count },
    (_, i) => `2001:DB8:0:0:${((from + i) >> 16).toString(16)}::${((from + i) & 0xffff).toString(16)}`,
  );

for (const { name, strategy, object } of [
  {
    name: "a slice of 100,000 IPv6 addresses",
    strategy: endpointSliceStrategy,
    object: {
      metadata: {},
      addressType: "IPv6",
      ports: [],
      endpoints: Array.from({ length: 1000 }, (_, i) => ({ addresses: addresses(100, i * 100) })),
    },
  },
  {
    name: "endpoints of 70,000 IPv6 addresses",
    strategy: endpointsStrategy,
    object: { metadata: {}, subsets: [{ addresses: addresses(70_000, 0).map((ip) => ({ ip })) }] },
  },
] as unknown as { name: string; strategy: Strategy; object: KubeObject }[]) {
  test(`${name} takes no long turn`, async () => {
    const longest = await longestTurnOf(200, async () => {
      const steps = strategy.validateInSteps?.(object, undefined, {} as StrategyContext);
      const errors = steps === undefined ? strategy.validate?.(object, {} as StrategyContext) : await new Turns().run(steps);
      assert.deepEqual(errors, []);
    });
    assert.ok(longest < 200, `a turn of ${longest} ms`);
  });
}

test("as many errors as values are reported", async () => {
  const subsets = [{ addresses: Array.from({ length: 80_000 }, () => ({ ip: "no" })) }];
  const steps = endpointsStrategy.validateInSteps?.({ metadata: {}, subsets } as never, undefined, {} as StrategyContext);
  assert.equal((await new Turns().run(steps as NonNullable<typeof steps>)).length, 160_000);
});
