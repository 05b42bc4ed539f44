import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  HorizontalPodAutoscalerBehavior,
  HPAScalingRules,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { type NormalizationOptions, newHistory, normalizeReplicas, withScaleEvent } from "./behavior.ts";

const second = 1000;
const now = 1_000_000 * second;
/** With the API server's defaults. */
const up = (rules: HPAScalingRules = {}): HPAScalingRules => ({
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
  ...rules,
});
const down = (rules: HPAScalingRules = {}): HPAScalingRules => ({
  selectPolicy: "Max",
  policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
  ...rules,
});
const behavior = (scaleUp: HPAScalingRules = {}, scaleDown: HPAScalingRules = {}): HorizontalPodAutoscalerBehavior => ({
  scaleUp: up(scaleUp),
  scaleDown: down(scaleDown),
});
const smoothed = (options: Partial<NormalizationOptions> & Pick<NormalizationOptions, "current" | "desired">) =>
  normalizeReplicas({
    behavior: undefined,
    history: { ...newHistory(options.current, now - 3600 * second), recommendations: [] },
    minReplicas: 2,
    maxReplicas: 20,
    downscaleStabilizationMs: 300 * second,
    now,
    ...options,
  });
const ago = (seconds: number, replicas: number) => ({ at: now - seconds * second, replicas });
const past = (...recommendations: { at: number; replicas: number }[]) => ({ recommendations, scaledUp: [], scaledDown: [] });
const events = (direction: "scaledUp" | "scaledDown", ...changes: [seconds: number, change: number][]) => ({
  ...past(),
  [direction]: changes.map(([seconds, change]) => ({ at: now - seconds * second, change })),
});

for (const { name, options, replicas, able = "ReadyForNewScale", limited } of [
  {
    name: "does what is requested within the bounds",
    options: { current: 5, desired: 7 },
    replicas: 7,
    limited: "False DesiredWithinRange",
  },
  { name: "at most doubles", options: { current: 5, desired: 15 }, replicas: 10, limited: "True ScaleUpLimit" },
  {
    name: "may go to four at once",
    options: { current: 1, desired: 9, minReplicas: 1 },
    replicas: 4,
    limited: "True ScaleUpLimit",
  },
  { name: "stays below the most", options: { current: 15, desired: 25 }, replicas: 20, limited: "True TooManyReplicas" },
  { name: "stays above the least", options: { current: 3, desired: 1 }, replicas: 2, limited: "True TooFewReplicas" },
  {
    name: "waits with going down for recent recommendations",
    options: { current: 10, desired: 3, history: past(ago(299, 8), ago(301, 9)) },
    replicas: 8,
    able: "ScaleDownStabilized",
    limited: "False DesiredWithinRange",
  },
  {
    name: "waits for a recommendation that is as old as the window",
    options: { current: 10, desired: 3, history: past(ago(300, 8)) },
    replicas: 8,
    able: "ScaleDownStabilized",
    limited: "False DesiredWithinRange",
  },
  {
    name: "applies the highest recommendation also when it goes up",
    options: { current: 3, desired: 5, history: past(ago(100, 6)) },
    replicas: 6,
    able: "ScaleDownStabilized",
    limited: "False DesiredWithinRange",
  },
  {
    name: "rules: at most doubles, or adds four",
    options: { current: 2, desired: 15, behavior: behavior() },
    replicas: 6,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: the policy that changes least",
    options: { current: 10, desired: 19, behavior: behavior({ selectPolicy: "Min" }) },
    replicas: 14,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: no way up",
    options: { current: 5, desired: 9, behavior: behavior({ selectPolicy: "Disabled" }) },
    replicas: 5,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: no way down",
    options: { current: 5, desired: 3, behavior: behavior({}, { selectPolicy: "Disabled" }) },
    replicas: 5,
    limited: "True ScaleDownLimit",
  },
  {
    name: "rules: what was added in the period counts",
    options: {
      current: 8,
      desired: 20,
      behavior: behavior({ policies: [{ type: "Pods", value: 4, periodSeconds: 60 }] }),
      history: events("scaledUp", [59, 3], [60, 5]),
    },
    replicas: 9,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: more than allowed was added already",
    options: {
      current: 12,
      desired: 20,
      behavior: behavior({ policies: [{ type: "Pods", value: 2, periodSeconds: 60 }] }),
      history: events("scaledUp", [10, 6]),
    },
    replicas: 12,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: a share of what there was at the start of the period",
    options: {
      current: 12,
      desired: 20,
      behavior: behavior({ policies: [{ type: "Percent", value: 50, periodSeconds: 60 }] }),
      history: events("scaledUp", [30, 2]),
    },
    replicas: 15,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: takes away no more than allowed in the period",
    options: {
      current: 10,
      desired: 2,
      behavior: behavior({}, { policies: [{ type: "Pods", value: 4, periodSeconds: 60 }] }),
      history: events("scaledDown", [30, 3]),
    },
    replicas: 9,
    limited: "True ScaleDownLimit",
  },
  {
    name: "rules: of two ways down the one that changes most",
    options: {
      current: 10,
      desired: 2,
      behavior: behavior(
        {},
        {
          policies: [
            { type: "Pods", value: 2, periodSeconds: 60 },
            { type: "Percent", value: 50, periodSeconds: 60 },
          ],
        },
      ),
    },
    replicas: 5,
    limited: "True ScaleDownLimit",
  },
  {
    name: "rules: of two ways down the one that changes least",
    options: {
      current: 10,
      desired: 2,
      behavior: behavior(
        {},
        {
          selectPolicy: "Min",
          policies: [
            { type: "Pods", value: 2, periodSeconds: 60 },
            { type: "Percent", value: 50, periodSeconds: 60 },
          ],
        },
      ),
    },
    replicas: 8,
    limited: "True ScaleDownLimit",
  },
  {
    name: "rules: bounds come before speed",
    options: { current: 3, desired: 1, behavior: behavior() },
    replicas: 2,
    limited: "True TooFewReplicas",
  },
  {
    name: "rules: up only when all lately agree",
    options: {
      current: 4,
      desired: 9,
      behavior: behavior({ stabilizationWindowSeconds: 60 }),
      history: past(ago(59, 6), ago(60, 2)),
    },
    replicas: 6,
    able: "ScaleUpStabilized",
    limited: "False DesiredWithinRange",
  },
  {
    name: "rules: stays where those lately do not agree on the direction",
    options: { current: 4, desired: 9, behavior: behavior({ stabilizationWindowSeconds: 60 }), history: past(ago(30, 2)) },
    replicas: 4,
    able: "ScaleUpStabilized",
    limited: "False DesiredWithinRange",
  },
  {
    name: "rules: down waits for the autoscaler's own window",
    options: {
      current: 9,
      desired: 3,
      behavior: behavior({}, { stabilizationWindowSeconds: 60 }),
      history: past(ago(59, 5), ago(61, 8)),
    },
    replicas: 5,
    able: "ScaleDownStabilized",
    limited: "False DesiredWithinRange",
  },
  {
    name: "a recommendation as old as the window still counts",
    options: { current: 10, desired: 3, history: past(ago(300, 8)) },
    replicas: 8,
    able: "ScaleDownStabilized",
    limited: "False DesiredWithinRange",
  },
  {
    name: "the maximum, not the speed, limits where both are the same",
    options: { current: 10, desired: 25 },
    replicas: 20,
    limited: "True TooManyReplicas",
  },
  {
    name: "rules: the maximum, not the speed, limits where both are the same",
    options: { current: 10, desired: 25, behavior: behavior() },
    replicas: 20,
    limited: "True TooManyReplicas",
  },
  {
    name: "rules: the minimum, not the speed, limits where both are the same",
    options: {
      current: 10,
      desired: 1,
      behavior: behavior({}, { policies: [{ type: "Pods", value: 8, periodSeconds: 60 }] }),
    },
    replicas: 2,
    limited: "True TooFewReplicas",
  },
  {
    name: "rules: more than allowed was taken away already",
    options: {
      current: 10,
      desired: 5,
      behavior: behavior({}, { policies: [{ type: "Pods", value: 2, periodSeconds: 60 }] }),
      history: events("scaledDown", [10, 6]),
    },
    replicas: 10,
    limited: "True ScaleDownLimit",
  },
  {
    name: "rules: a share that is no whole number is rounded up going up",
    options: { current: 5, desired: 20, behavior: behavior({ policies: [{ type: "Percent", value: 50, periodSeconds: 60 }] }) },
    replicas: 8,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: and what remains of it is rounded down going down",
    options: {
      current: 7,
      desired: 2,
      behavior: behavior({}, { policies: [{ type: "Percent", value: 50, periodSeconds: 60 }] }),
    },
    replicas: 3,
    limited: "True ScaleDownLimit",
  },
  {
    name: "rules: each policy looks back over its own period",
    options: {
      current: 12,
      desired: 20,
      behavior: behavior({
        policies: [
          { type: "Pods", value: 4, periodSeconds: 15 },
          { type: "Pods", value: 10, periodSeconds: 60 },
        ],
      }),
      history: events("scaledUp", [30, 8]),
    },
    replicas: 16,
    limited: "True ScaleUpLimit",
  },
  {
    name: "rules: down at once with a window of 0, whatever the flag says",
    options: { current: 9, desired: 3, behavior: behavior({}, { stabilizationWindowSeconds: 0 }), history: past(ago(1, 9)) },
    replicas: 3,
    limited: "False DesiredWithinRange",
  },
  {
    name: "rules: a recommendation as old as the window no longer counts going down",
    options: {
      current: 9,
      desired: 3,
      behavior: behavior({}, { stabilizationWindowSeconds: 60 }),
      history: past(ago(60, 8)),
    },
    replicas: 3,
    limited: "False DesiredWithinRange",
  },
  {
    name: "rules: down waits for the flag's window where there is none",
    options: { current: 9, desired: 3, behavior: behavior(), history: past(ago(299, 5)) },
    replicas: 5,
    able: "ScaleDownStabilized",
    limited: "False DesiredWithinRange",
  },
] as const) {
  test(name, () => {
    const result = smoothed(options);
    assert.equal(result.replicas, replicas);
    assert.equal(result.ableToScale.reason, able);
    assert.equal(`${result.scalingLimited.status} ${result.scalingLimited.reason}`, limited);
  });
}

test("keeps recommendations, and drops those older than all windows", () => {
  const { recommendations } = smoothed({ current: 5, desired: 7, history: past(ago(301, 1), ago(300, 2)) });
  assert.deepEqual(recommendations, [ago(300, 2), ago(0, 7)]);
  const own = behavior({ stabilizationWindowSeconds: 600 }, { stabilizationWindowSeconds: 60 });
  const kept = smoothed({ current: 5, desired: 7, behavior: own, history: past(ago(601, 1), ago(600, 2), ago(61, 3)) });
  assert.deepEqual(kept.recommendations, [ago(600, 2), ago(61, 3), ago(0, 7)], "the longer of the two windows counts");
});

test("remembers changes as long as a policy looks back, and none without a behavior", () => {
  const rules = behavior({ policies: [{ type: "Pods", value: 4, periodSeconds: 60 }] });
  const history = events("scaledUp", [61, 1], [60, 2]);
  assert.deepEqual(withScaleEvent(history, rules, 5, 8, now).scaledUp, [
    { at: now - 60 * second, change: 2 },
    { at: now, change: 3 },
  ]);
  assert.deepEqual(withScaleEvent(history, rules, 8, 5, now).scaledDown, [{ at: now, change: 3 }]);
  assert.equal(withScaleEvent(history, undefined, 5, 8, now), history);
  const longDown = behavior(
    {},
    {
      policies: [
        { type: "Percent", value: 10, periodSeconds: 60 },
        { type: "Pods", value: 4, periodSeconds: 1800 },
      ],
    },
  );
  assert.deepEqual(withScaleEvent(events("scaledDown", [600, 1]), longDown, 8, 5, now).scaledDown, [
    { at: now - 600 * second, change: 1 },
    { at: now, change: 3 },
  ]);
});

test("for random inputs the result is within the bounds and between the current and the requested or recommended size", () => {
  const count = fc.integer({ min: 2, max: 20 });
  const recommendations = fc.array(fc.tuple(fc.nat(400), count), { maxLength: 5 });
  const rules = fc.constantFrom(undefined, behavior(), behavior({ selectPolicy: "Min" }, { stabilizationWindowSeconds: 60 }));
  fc.assert(
    fc.property(count, fc.nat(60), recommendations, rules, (current, desired, lately, own) => {
      const history = past(...lately.map(([seconds, replicas]) => ago(seconds, replicas)));
      const { replicas } = smoothed({ current, desired, history, behavior: own });
      assert.ok(replicas >= 2 && replicas <= 20, `${replicas}`);
      const seen = [current, desired, ...lately.map(([, replicas_]) => replicas_)];
      assert.ok(replicas <= Math.max(...seen) && replicas >= Math.min(...seen, 20), `${replicas} of ${seen}`);
    }),
  );
});

test("scaling up does not wait where no window is set", () => {
  const options = { current: 2, desired: 6, history: past(ago(0.5, 2)) };
  const { stabilizationWindowSeconds: _, ...scaleUp } = up();
  assert.equal(smoothed({ ...options, behavior: { scaleUp, scaleDown: down() } }).replicas, 6);
  assert.equal(smoothed({ ...options, behavior: behavior({ stabilizationWindowSeconds: 1 }) }).replicas, 2);
});
