import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { argsShapes, defaultPluginArgs, validateArgs } from "./argument-rows.ts";
import type { PluginArgs } from "./plugin-args.ts";

const fit = defaultPluginArgs.NodeResourcesFit.scoringStrategy;
const weight = (name: string, amount: number) => ({ name, weight: amount });
const point = (utilization: number, score: number) => ({ utilization, score });
const term = (...operators: string[]) => ({
  // cast: terms of a file, where any text may stand
  matchExpressions: operators.map((operator) => ({ key: "a", operator: operator as "In", values: [] })),
});

for (const plugin of Object.keys(defaultPluginArgs)) {
  test(`the default arguments of ${plugin} are valid fields with valid values`, () => {
    const args: object = defaultPluginArgs[plugin as keyof PluginArgs];
    const known = Object.keys(argsShapes[plugin]?.fields ?? {});
    assert.deepEqual(
      Object.keys(args).filter((field) => !known.includes(field)),
      [],
    );
    assert.deepEqual(validateArgs(plugin, defaultPluginArgs, "args", false), []);
  });
}

test("the default arguments are upstream's", () => {
  const resources = [weight("cpu", 1), weight("memory", 1)];
  assert.deepEqual(defaultPluginArgs, {
    DefaultPreemption: { minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100 },
    InterPodAffinity: { hardPodAffinityWeight: 1 },
    NodeAffinity: {},
    NodeResourcesBalancedAllocation: { resources },
    NodeResourcesFit: { scoringStrategy: { type: "LeastAllocated", resources } },
    PodTopologySpread: { defaultingType: "System" },
    VolumeBinding: { bindTimeoutSeconds: 600 },
  });
});

for (const { name, args, byVolumeCapacity = false, want } of [
  {
    name: "reports a field and then the rule of two fields",
    args: { DefaultPreemption: { minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0 } },
    want: /^\[args.minCandidateNodesPercentage: Invalid value: 0: cannot be zero.*, args.minCandidateNodesAbsolute: Invalid value: 0/,
  },
  {
    name: "names the fields of a scoring strategy as upstream does",
    args: { NodeResourcesFit: { scoringStrategy: { type: "MostAllocated", resources: [{ name: "cpu", weight: 101 }] } } },
    want: /^args.resources\[0\].weight: Invalid value: 101: resource weight of cpu not in valid range \(0, 100\]$/,
  },
  {
    name: "requires a shape with the feature gate",
    args: { VolumeBinding: { bindTimeoutSeconds: 1 } },
    byVolumeCapacity: true,
    want: /^args.shape: Required value: at least one point must be specified$/,
  },
  {
    name: "refuses a shape without the feature gate",
    args: { VolumeBinding: { bindTimeoutSeconds: 1, shape: [] } },
    want: /^args.shape: Invalid value: .*: unexpected field `shape`/,
  },
  {
    name: "reports negative numbers of candidates",
    args: { DefaultPreemption: { minCandidateNodesPercentage: -1, minCandidateNodesAbsolute: -1 } },
    want: /^\[args.minCandidateNodesPercentage: Invalid value: -1: not in valid range \[0, 100\], args.minCandidateNodesAbsolute: Invalid value: -1: not in valid range \[0, inf\)\]$/,
  },
  {
    name: "reports a share of candidates above 100",
    args: { DefaultPreemption: { minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: 0 } },
    want: /^args.minCandidateNodesPercentage: Invalid value: 101: not in valid range \[0, 100\]$/,
  },
  {
    name: "reports a negative weight of an affinity",
    args: { InterPodAffinity: { hardPodAffinityWeight: -1 } },
    want: /^args.hardPodAffinityWeight: Invalid value: -1: not in valid range \[0, 100\]$/,
  },
  {
    name: "reports each ignored resource and each group, at its index",
    args: {
      NodeResourcesFit: {
        scoringStrategy: fit,
        ignoredResources: ["example.com/gpu", "a/b/c"],
        ignoredResourceGroups: ["example.com", "a/b", "-"],
      },
    },
    want: /^\[args.ignoredResources\[1\]: Invalid value: "a\/b\/c": a qualified name .*, args.ignoredResourceGroups\[1\]: Invalid value: "a\/b": resource group name can't contain '\/', args.ignoredResourceGroups\[2\]: Invalid value: "-": name part must consist of .*\]$/,
  },
  {
    name: "reports a weight of a scoring strategy that is 0",
    args: { NodeResourcesFit: { scoringStrategy: { type: "LeastAllocated", resources: [weight("cpu", 0)] } } },
    want: /^args.resources\[0\].weight: Invalid value: 0: resource weight of cpu not in valid range \(0, 100\]$/,
  },
  {
    name: "reports default constraints that allow a skew of 0, have a selector or are there twice",
    args: {
      PodTopologySpread: {
        defaultingType: "List",
        defaultConstraints: [
          { maxSkew: 0, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: {} },
          { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" },
        ],
      },
    },
    want: /^\[args.defaultConstraints\[0\].maxSkew: Invalid value: 0: not in valid range \(0, inf\), args.defaultConstraints\[0\].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod, args.defaultConstraints\[1\]: Duplicate value: "\{zone, DoNotSchedule\}"\]$/,
  },
  {
    name: "reports a negative timeout of bindings",
    args: { VolumeBinding: { bindTimeoutSeconds: -1 } },
    want: /^args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value$/,
  },
  {
    name: "reports each weight of a scoring strategy, with the resource's name",
    args: {
      NodeResourcesFit: {
        scoringStrategy: { type: "LeastAllocated", resources: [weight("cpu", 1), weight("memory", -1), weight("a/b", 101)] },
      },
    },
    want: /^\[args.resources\[1\].weight: Invalid value: -1: resource weight of memory not .*, args.resources\[2\].weight: Invalid value: 101: resource weight of a\/b not .*\]$/,
  },
  {
    name: "reports each point of a shape that is out of range, and the first that is not sorted",
    args: {
      NodeResourcesFit: {
        scoringStrategy: {
          type: "RequestedToCapacityRatio",
          resources: [],
          requestedToCapacityRatio: { shape: [point(-1, 0), point(50, -1), point(40, 11), point(30, 10), point(101, 0)] },
        },
      },
    },
    want: /^\[args.shape\[2\].utilization: Invalid value: 40: utilization values must be sorted in increasing order, args.shape\[0\].utilization: Invalid value: -1: not in valid range \[0, 100\], args.shape\[1\].score: Invalid value: -1: not in valid range \[0, 10\], args.shape\[2\].score: Invalid value: 11: .*, args.shape\[4\].utilization: Invalid value: 101: .*\]$/,
  },
  {
    name: "reports what each default constraint lacks",
    args: {
      PodTopologySpread: {
        defaultingType: "List",
        defaultConstraints: [
          { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" },
          // cast: constraints of a file, where any text may stand
          { maxSkew: -1, topologyKey: "", whenUnsatisfiable: "" as "DoNotSchedule" },
          { maxSkew: 1, topologyKey: "a b", whenUnsatisfiable: "Never" as "DoNotSchedule" }, // cast: see above
        ],
      },
    },
    want: /^\[args.defaultConstraints\[1\].maxSkew: Invalid value: -1: not in valid range \(0, inf\), args.defaultConstraints\[1\].topologyKey: Required value: can not be empty, args.defaultConstraints\[1\].whenUnsatisfiable: Required value: can not be empty, args.defaultConstraints\[2\].topologyKey: Invalid value: "a b": name part must .*, args.defaultConstraints\[2\].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"\]$/,
  },
  {
    name: "reports each operator of a required and of a preferred node affinity",
    args: {
      NodeAffinity: {
        addedAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term("In"), term("In", "Near")] },
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: term("In") },
            { weight: 1, preference: term("Far") },
          ],
        },
      },
    },
    want: /^\[args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms\[1\].matchExpressions\[1\].operator: Unsupported value: "Near"[^,]*, args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution\[1\].matchExpressions\[0\].operator: Unsupported value: "Far"/,
  },
] satisfies { name: string; args: Partial<PluginArgs>; byVolumeCapacity?: boolean; want: RegExp }[]) {
  test(name, () => {
    const [plugin = ""] = Object.keys(args);
    const errors = validateArgs(plugin, { ...defaultPluginArgs, ...args }, "args", byVolumeCapacity);
    assert.match(formatFieldErrors(errors), want);
  });
}

test("a plugin without arguments has no errors", () =>
  assert.deepEqual(validateArgs("NodeName", defaultPluginArgs, "args", false), []));

const skewed = (topologyKey: string, whenUnsatisfiable: "DoNotSchedule" | "ScheduleAnyway") => ({
  ...{ maxSkew: 1, topologyKey, whenUnsatisfiable },
});

for (const [plugin, args] of [
  ["DefaultPreemption", { minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1 }],
  ["DefaultPreemption", { minCandidateNodesPercentage: 100, minCandidateNodesAbsolute: 0 }],
  ["InterPodAffinity", { hardPodAffinityWeight: 0 }],
  ["InterPodAffinity", { hardPodAffinityWeight: 100 }],
  ["NodeAffinity", {}],
  [
    "NodeAffinity",
    {
      addedAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [term("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")],
        },
      },
    },
  ],
  ["NodeResourcesFit", { scoringStrategy: { type: "MostAllocated", resources: [weight("cpu", 1), weight("memory", 100)] } }],
  [
    "NodeResourcesFit",
    {
      scoringStrategy: {
        type: "RequestedToCapacityRatio",
        resources: [],
        requestedToCapacityRatio: { shape: [point(0, 10), point(1, 0), point(100, 10)] },
      },
    },
  ],
  [
    "PodTopologySpread",
    { defaultingType: "List", defaultConstraints: [skewed("zone", "DoNotSchedule"), skewed("zone", "ScheduleAnyway")] },
  ],
  ["PodTopologySpread", { defaultingType: "System", defaultConstraints: [] }],
  ["VolumeBinding", { bindTimeoutSeconds: 0 }],
] satisfies { [Plugin in keyof PluginArgs]: [plugin: Plugin, args: PluginArgs[Plugin]] }[keyof PluginArgs][]) {
  test(`${plugin} may have ${JSON.stringify(args)}`, () =>
    assert.deepEqual(validateArgs(plugin, { ...defaultPluginArgs, [plugin]: args }, "args", false), []));
}
