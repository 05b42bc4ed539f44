import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldErrors } from "@coxswain/apimachinery/objects/errors/field-error";
import { argsShapes, defaultPluginArgs, validateArgs } from "./argument-rows.ts";
import type { PluginArgs } from "./plugin-args.ts";

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
] satisfies { name: string; args: Partial<PluginArgs>; byVolumeCapacity?: boolean; want: RegExp }[]) {
  test(name, () => {
    const [plugin = ""] = Object.keys(args);
    const errors = validateArgs(plugin, { ...defaultPluginArgs, ...args }, "args", byVolumeCapacity);
    assert.match(formatFieldErrors(errors), want);
  });
}
