import assert from "node:assert/strict";
import { test } from "node:test";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { strategiesOf } from "../../../testing/kind-rules.ts";
import { prepareUpdate } from "../../../testing/run-strategy.ts";
import type { StrategyContext } from "../../generic/strategy.ts";

const { strategy: autoscalerStrategy } = strategiesOf<HorizontalPodAutoscaler>("horizontalpodautoscalers.autoscaling");

const withGates = (...on: string[]): StrategyContext => ({
  ...{ user: undefined, namespace: "default", dryRun: false, now: () => 0, warn: () => {} },
  featureEnabled: (gate) => on.includes(gate),
});
const ofContainer = { type: "ContainerResource", containerResource: { name: "cpu", container: "c", target: { type: "Value" } } };
const ofPods = { type: "Resource", resource: { name: "cpu", target: { type: "Value" } } };
const scaler = (...metrics: object[]) =>
  ({
    metadata: { name: "h" },
    spec: { maxReplicas: 1, metrics: structuredClone(metrics) },
  }) as unknown as HorizontalPodAutoscaler;
const kept = ({ spec }: HorizontalPodAutoscaler): boolean =>
  (spec?.metrics ?? []).some(({ containerResource }) => containerResource !== undefined);

for (const { name, had, gates = [], want } of [
  { name: "a new autoscaler loses them", had: undefined, want: false },
  { name: "a new autoscaler keeps them where they are enabled", had: undefined, gates: ["HPAContainerMetrics"], want: true },
  { name: "one without any gets none", had: scaler(ofPods), want: false },
  { name: "one without metrics gets none", had: scaler(), want: false },
  { name: "one that has them keeps them", had: scaler(ofContainer), want: true },
  { name: "one that has them beside others keeps them", had: scaler(ofPods, ofContainer), want: true },
] as { name: string; had: HorizontalPodAutoscaler | undefined; gates?: string[]; want: boolean }[]) {
  test(`metrics of containers: ${name}`, () => {
    const next = scaler(ofPods, ofContainer);
    if (had === undefined) autoscalerStrategy.prepareForCreate?.(next, withGates(...gates));
    else prepareUpdate(autoscalerStrategy, next, had, withGates(...gates));
    assert.equal(kept(next), want);
    assert.equal(next.spec?.metrics?.length, 2, "the others stay");
  });
}
