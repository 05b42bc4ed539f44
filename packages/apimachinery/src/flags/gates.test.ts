import assert from "node:assert/strict";
import { test } from "node:test";
import { gateLines, gatesOf, newFeatureGates } from "./feature-gates.ts";
import { type GateSpec, gates } from "./gates.ts";

const namesWhere = (matches: (gate: GateSpec) => boolean): string[] =>
  Object.entries(gates)
    .filter(([, gate]) => matches(gate))
    .map(([name]) => name);

test("1.23 has 140 gates: what is alpha is off, what is beta or stable is on but for these", () => {
  const count = (stage: string): number => namesWhere((gate) => gate.stage === stage).length;
  assert.deepEqual([count("alpha"), count("beta"), count("GA"), count("deprecated")], [48, 63, 26, 3]);
  assert.deepEqual(
    namesWhere((gate) => gate.stage === "alpha" && gate.default),
    [],
  );
  assert.deepEqual(
    namesWhere((gate) => gate.stage === "beta" && !gate.default),
    [
      "AllBeta",
      "CSIMigrationAzureFile",
      "CSIMigrationvSphere",
      "ExperimentalHostUserNamespaceDefaulting",
      "ProbeTerminationGracePeriod",
      "TopologyAwareHints",
    ],
  );
  assert.deepEqual(
    namesWhere((gate) => gate.stage === "GA" && (gate.locked !== true || !gate.default)),
    ["AdvancedAuditing", "DryRun", "ExecProbeTimeout", "ServerSideApply"],
  );
  assert.deepEqual(
    namesWhere((gate) => gate.stage !== "GA" && gate.locked === true),
    [],
  );
  assert.deepEqual(
    namesWhere((gate) => gate.stage === "deprecated").map((name) => [name, gates[name]?.default]),
    [
      ["DynamicKubeletConfig", false],
      ["StreamingProxyRedirects", false],
      ["ValidateProxyRedirects", true],
    ],
  );
});

test("the kubelet has three other defaults and one gate less", () => {
  const others = gatesOf("kubelet");
  const different = Object.keys(gates).filter((name) => others[name]?.default !== gates[name]?.default);
  assert.deepEqual(
    different.map((name) => [name, others[name]?.default]),
    [
      ["CPUManagerPolicyOptions", false],
      ["CSIMigrationAWS", false],
      ["ServerSideFieldValidation", undefined],
      ["TopologyAwareHints", true],
    ],
  );
  assert.throws(() => newFeatureGates("kubelet", { ServerSideFieldValidation: true }), {
    message: "unrecognized feature gate: ServerSideFieldValidation",
  });
  assert.equal(newFeatureGates("kubelet", {}).enabled("TopologyAwareHints"), true);
});

test("--help lists alpha and beta gates with their defaults, sorted", () => {
  const lines = gateLines("kube-scheduler");
  assert.equal(lines.length, 48 + 63);
  assert.equal(lines[0], "APIListChunking=true|false (BETA - default=true)");
  assert.ok(lines.includes("TopologyAwareHints=true|false (BETA - default=false)"));
  assert.ok(!lines.some((line) => line.startsWith("ServerSideApply=")));
});
