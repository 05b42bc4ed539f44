import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { DaemonSet, Deployment, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { strategiesOf } from "../../testing/kind-rules.ts";
import { errorsOf, prepareUpdate } from "../../testing/run-strategy.ts";
import type { StrategyContext } from "../generic/strategy.ts";
import { defaultDaemonSet } from "./daemonsets/defaults.ts";
import { daemonSetStrategy } from "./daemonsets/strategy.ts";
import { defaultDeployment } from "./deployments/defaults.ts";
import { deploymentStatusStrategy, deploymentStrategy } from "./deployments/strategy.ts";
import { defaultStatefulSet } from "./statefulsets/defaults.ts";

const { strategy: statefulSetStrategy } = strategiesOf<StatefulSet>("statefulsets.apps");

const ctx: StrategyContext = {
  user: undefined,
  namespace: "default",
  dryRun: false,
  now: () => 0,
  featureEnabled: () => true,
  warn() {},
};

const spec = (extra: object = {}): object => ({
  selector: { matchLabels: { app: "a" } },
  template: { metadata: { labels: { app: "a" } }, spec: { containers: [{ name: "c", image: "x" }] } },
  ...extra,
});

function aDeployment(extra: object = {}, metadata: object = {}): Deployment {
  const deployment = { metadata: { name: "d", namespace: "default", ...metadata }, spec: spec(extra) } as unknown as Deployment;
  defaultDeployment(deployment);
  return deployment;
}

test("a deployment gets upstream's defaults", () => {
  const { replicas, strategy, revisionHistoryLimit, progressDeadlineSeconds } = aDeployment().spec;
  assert.deepEqual(
    { replicas, strategy, revisionHistoryLimit, progressDeadlineSeconds },
    {
      replicas: 1,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
    },
  );
  assert.deepEqual(aDeployment({ strategy: { type: "Recreate" }, replicas: 0 }).spec.strategy, { type: "Recreate" });
});

for (const { name, extra, want } of [
  { name: "is as it should be", extra: {}, want: [] },
  {
    name: "wants less than nothing",
    extra: { replicas: -1 },
    want: ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
  },
  {
    name: "has no selector",
    extra: { selector: undefined },
    want: [
      "spec.selector: Required value",
      'spec.template.metadata.labels: Invalid value: map[string]string{"app":"a"}: `selector` does not match template `labels`',
    ],
  },
  {
    name: "selects everything",
    extra: { selector: {} },
    want: [
      "spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: empty selector is invalid for deployment",
    ],
  },
  {
    name: "selects other pods than its own",
    extra: { selector: { matchLabels: { app: "b" } } },
    want: [
      'spec.template.metadata.labels: Invalid value: map[string]string{"app":"a"}: `selector` does not match template `labels`',
    ],
  },
  {
    name: "would never get on",
    extra: { strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: "0%" } } },
    want: [
      'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:0, IntVal:0, StrVal:""}: may not be 0 when `maxSurge` is 0',
    ],
  },
  {
    name: "restarts its pods only on failure",
    extra: {
      template: {
        metadata: { labels: { app: "a" } },
        spec: { restartPolicy: "OnFailure", containers: [{ name: "c", image: "x" }] },
      },
    },
    want: ['spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'],
  },
  {
    name: "gives up too early",
    extra: { progressDeadlineSeconds: 5, minReadySeconds: 5 },
    want: ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
  },
]) {
  test(`validation of a deployment that ${name}`, () => {
    assert.deepEqual(errorsOf(deploymentStrategy, aDeployment(extra), undefined, ctx).map(formatFieldError), want);
  });
}

test("the generation of a deployment counts changes of its spec and annotations, not of its labels", () => {
  const current = aDeployment({}, { generation: 3 });
  const next = (extra: object, metadata: object): number => {
    const changed = aDeployment(extra, metadata);
    prepareUpdate(deploymentStrategy, changed, current, ctx);
    return changed.metadata.generation ?? 0;
  };
  assert.equal(next({}, {}), 3);
  assert.equal(next({}, { labels: { a: "b" } }), 3);
  assert.equal(next({ replicas: 2 }, {}), 4);
  assert.equal(next({}, { annotations: { a: "b" } }), 4);
  assert.equal(next({ replicas: 2 }, { annotations: { a: "b" } }), 4);
});

test("users do not write status, and the status endpoint writes nothing else", () => {
  const current = { ...aDeployment({}, { generation: 1 }), status: { replicas: 1 } } as Deployment;
  const next = { ...aDeployment({ replicas: 9 }), status: { replicas: 9 } } as Deployment;
  prepareUpdate(deploymentStrategy, next, current, ctx);
  assert.deepEqual(next.status, { replicas: 1 });
  const status = { ...aDeployment({ replicas: 9 }, { labels: { a: "b" } }), status: { replicas: 2 } } as Deployment;
  prepareUpdate(deploymentStatusStrategy, status, current, ctx);
  assert.deepEqual(
    [status.spec.replicas, status.status, status.metadata.labels, status.metadata.generation],
    [1, { replicas: 2 }, undefined, 1],
  );
});

test("a selector never changes", () => {
  const next = aDeployment({
    selector: { matchLabels: { app: "b" } },
    template: { metadata: { labels: { app: "b" } }, spec: { containers: [{ name: "c", image: "x" }] } },
  });
  const errors = errorsOf(deploymentStrategy, next, aDeployment(), ctx);
  assert.deepEqual(errors.map(formatFieldError), [
    'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"app":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
  ]);
});

test("of a stateful set only some fields change", () => {
  const make = (extra: object): StatefulSet => {
    const set = {
      metadata: { name: "s", namespace: "default" },
      spec: { ...spec({ serviceName: "s" }), ...extra },
    } as unknown as StatefulSet;
    defaultStatefulSet(set);
    return set;
  };
  const update = (extra: object): string[] =>
    errorsOf(statefulSetStrategy, make(extra), make({}), ctx).map((error) => error.field);
  assert.deepEqual(update({ replicas: 3 }), []);
  assert.deepEqual(update({ updateStrategy: { type: "OnDelete" } }), []);
  assert.deepEqual(update({ serviceName: "other" }), ["spec"]);
  assert.deepEqual(update({ podManagementPolicy: "Parallel" }), ["spec"]);
});

test("a daemon set's maxSurge and maxUnavailable exclude each other", () => {
  const errors = (rollingUpdate: object): string[] => {
    const set = {
      metadata: { name: "s" },
      spec: spec({ updateStrategy: { type: "RollingUpdate", rollingUpdate } }),
    } as unknown as DaemonSet;
    defaultDaemonSet(set);
    return errorsOf(daemonSetStrategy, set, undefined, ctx).map((error) => error.detail);
  };
  assert.deepEqual(errors({}), []);
  assert.deepEqual(errors({ maxSurge: 1 }), ["may not be set when maxUnavailable is non-zero"]);
  assert.deepEqual(errors({ maxSurge: 0, maxUnavailable: 0 }), ["cannot be 0 when maxSurge is 0"]);
});

for (const { name, on, given, want } of [
  {
    name: "gets a policy for its claims with the gate",
    on: true,
    given: undefined,
    want: { whenDeleted: "Retain", whenScaled: "Retain" },
  },
  {
    name: "gets the half that is missing",
    on: true,
    given: { whenScaled: "Delete" },
    want: { whenDeleted: "Retain", whenScaled: "Delete" },
  },
  { name: "loses it without the gate", on: false, given: { whenScaled: "Delete" }, want: undefined },
]) {
  test(`a stateful set ${name}`, () => {
    const set = { metadata: {}, spec: spec({ persistentVolumeClaimRetentionPolicy: given }) } as unknown as StatefulSet;
    statefulSetStrategy.prepareForCreate?.(set, { ...ctx, featureEnabled: () => on });
    assert.deepEqual(set.spec.persistentVolumeClaimRetentionPolicy, want);
  });
}
