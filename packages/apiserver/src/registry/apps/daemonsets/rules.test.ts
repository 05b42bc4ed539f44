import assert from "node:assert/strict";
import { test } from "node:test";
import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { faultsOf, strategiesOf, testKindRules } from "../../../testing/kind-rules.ts";
import { prepareUpdate } from "../../../testing/run-strategy.ts";
import { wrongExpressions } from "../../../testing/selector-cases.ts";
import type { StrategyContext } from "../../generic/strategy.ts";

testKindRules(
  "daemonsets.apps",
  {
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  },
  [
    { name: "a set", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { spec: {} },
      want: [
        "spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`",
        "spec.template.spec.containers: Required value",
      ],
    },
    {
      name: "labels that are not selected, and numbers",
      change: { "spec.selector": { matchLabels: { a: "c" } }, "spec.minReadySeconds": -1, "spec.revisionHistoryLimit": -1 },
      want: [
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: `selector` does not match template `labels`',
        "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
        "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "an unknown strategy",
      change: { "spec.updateStrategy": { type: "Slow" } },
      want: [
        'spec.updateStrategy: Unsupported value: apps.DaemonSetUpdateStrategy{Type:"Slow", RollingUpdate:(*apps.RollingUpdateDaemonSet)(nil)}: supported values: "RollingUpdate", "OnDelete"',
      ],
    },
    {
      name: "a rolling update that cannot move",
      change: { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 0 } } },
      want: ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
    },
    {
      name: "a rolling update of less than nothing",
      change: { "spec.updateStrategy.rollingUpdate": { maxUnavailable: "-1%", maxSurge: 0 } },
      want: [
        `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"-1%"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`,
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
      ],
    },
    {
      name: "a rolling update of a number and a share",
      change: { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: "50%" } } },
      want: [
        'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"50%"}: may not be set when maxUnavailable is non-zero',
      ],
    },
    {
      name: "a rolling update of both",
      change: { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } } },
      want: [
        'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:0, IntVal:1, StrVal:""}: may not be set when maxUnavailable is non-zero',
      ],
    },
    {
      name: "a disk that may be written by all",
      change: { "spec.template.spec.volumes": [{ name: "v", gcePersistentDisk: { pdName: "x" } }] },
      want: [
        "spec.template.spec.volumes[0].gcePersistentDisk.readOnly: Invalid value: false: must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if it is read-only",
      ],
    },
    {
      name: "another selector",
      change: { "spec.selector": { matchLabels: { a: "c" } }, "spec.template.metadata.labels": { a: "c" } },
      before: {},
      want: [
        'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"c"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
      ],
    },
    {
      name: "counts",
      change: {
        status: {
          currentNumberScheduled: -1,
          numberMisscheduled: -1,
          desiredNumberScheduled: -1,
          numberReady: -1,
          observedGeneration: -1,
          updatedNumberScheduled: -1,
          numberAvailable: -1,
          numberUnavailable: -1,
        },
      },
      before: {},
      status: true,
      want: [
        "status.currentNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
        "status.numberMisscheduled: Invalid value: -1: must be greater than or equal to 0",
        "status.desiredNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
        "status.numberReady: Invalid value: -1: must be greater than or equal to 0",
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.updatedNumberScheduled: Invalid value: -1: must be greater than or equal to 0",
        "status.numberAvailable: Invalid value: -1: must be greater than or equal to 0",
        "status.numberUnavailable: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "an empty selector",
      change: { "spec.selector": {} },
      want: [
        "spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: empty selector is invalid for daemonset",
      ],
    },
    {
      name: "a selector of wrong expressions",
      change: {
        "spec.selector": wrongExpressions.selector,
      },
      want: wrongExpressions.want("spec.selector"),
    },
    {
      name: "pods that end",
      change: { "spec.template.spec.restartPolicy": "Never", "spec.template.spec.activeDeadlineSeconds": 5 },
      want: [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported",
      ],
    },
    {
      name: "steps that are no part of the whole",
      change: { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "x", maxSurge: -1 } } },
      want: [
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:\"x\"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "a surge of less than nothing beside pods that may be unavailable",
      change: { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: -1 } } },
      want: [
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0",
        'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:0, IntVal:-1, StrVal:""}: may not be set when maxUnavailable is non-zero',
      ],
    },
    {
      name: "steps beyond the whole",
      change: { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "101%", maxSurge: "0%" } } },
      want: [
        'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: must not be greater than 100%',
      ],
    },
    {
      name: "a surge beyond the whole",
      change: { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: "101%" } } },
      want: [
        'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: must not be greater than 100%',
      ],
    },
    {
      name: "a rolling update without steps",
      undefaulted: true,
      change: { "spec.template.spec.containers": [], "spec.updateStrategy": { type: "RollingUpdate" } },
      want: [
        "spec.template.spec.containers: Required value",
        "spec.template.spec.restartPolicy: Required value",
        "spec.template.spec.dnsPolicy: Required value",
        'spec.template.spec.restartPolicy: Unsupported value: "": supported values: "Always"',
        "spec.updateStrategy.rollingUpdate: Required value",
      ],
    },
    {
      name: "a collision taken back",
      status: true,
      before: { "status.collisionCount": 2 },
      change: { "status.collisionCount": 1 },
      want: ["status.collisionCount: Invalid value: 1: cannot be decremented"],
    },
  ],
);

for (const { value, fault } of [
  { value: "x", fault: "invalid syntax" },
  { value: "", fault: "invalid syntax" },
  { value: "1x", fault: "invalid syntax" },
  { value: " 1", fault: "invalid syntax" },
  { value: "1.5", fault: "invalid syntax" },
  { value: "9223372036854775808", fault: "value out of range" },
  { value: "-9223372036854775809", fault: "value out of range" },
]) {
  test(`daemonsets.apps: a template generation "${value}" makes no DaemonSet`, () => {
    const change = { "metadata.annotations": { "deprecated.daemonset.template.generation": value } };
    for (const before of [undefined, {}]) {
      assert.throws(() => faultsOf("daemonsets.apps", { spec: {} }, { change, ...(before && { before }) }), {
        message: `DaemonSet in version "v1" cannot be handled as a DaemonSet: strconv.ParseInt: parsing "${value}": ${fault}`,
      });
    }
  });
}

const { strategy, statusStrategy } = strategiesOf<DaemonSet>("daemonsets.apps");
const generated = (generation: string | undefined, image = "i"): DaemonSet => ({
  metadata: {
    name: "d",
    ...(generation !== undefined && { annotations: { "deprecated.daemonset.template.generation": generation } }),
  },
  spec: { selector: {}, template: { metadata: {}, spec: { containers: [{ name: "c", image }] } } },
});
const generationOf = ({ metadata }: DaemonSet) => metadata.annotations?.["deprecated.daemonset.template.generation"];
const ctx = { featureEnabled: () => true } as unknown as StrategyContext;

test("a created DaemonSet begins with the generation it comes with, and that is at least 1", () => {
  for (const [given, want] of [
    [undefined, "1"],
    ["-3", "1"],
    ["0", "1"],
    ["1", "1"],
    ["2", "2"],
    ["9223372036854775807", "9223372036854775807"],
  ] as const) {
    const next = generated(given);
    strategy.prepareForCreate?.(next, ctx);
    assert.equal(generationOf(next), want);
  }
});

test("the generation counts changes of the template, from what is stored, whatever a request says", () => {
  for (const { stored, image, want } of [
    { stored: "4", image: "i", want: "4" },
    { stored: "4", image: "j", want: "5" },
    { stored: undefined, image: "i", want: "0" },
    { stored: undefined, image: "j", want: "1" },
  ]) {
    const next = generated("9", image);
    prepareUpdate(strategy, next, generated(stored), ctx);
    assert.equal(generationOf(next), want);
    const status = generated("9", "j");
    prepareUpdate(statusStrategy, status, generated(stored), ctx);
    assert.equal(generationOf(status), stored ?? "0", "through the status nothing changes");
  }
});
