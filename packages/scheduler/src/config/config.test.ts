import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { gates as allGates } from "@coxswain/apimachinery/flags/gates";
import { kubeScheduler } from "../flags.ts";
import { completeConfig } from "./config.ts";
import type { SchedulerConfig } from "./scheduler-config.ts";
import { asYaml } from "./written.ts";

const gates = { enabled: (name: string) => allGates[name]?.default ?? false };
const directory = mkdtempSync(join(tmpdir(), "cox-scheduler-"));
process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
let count = 0;

const withCapacity = { enabled: (name: string) => name === "VolumeCapacityPriority" || gates.enabled(name) };

function complete(file: string | undefined, ...argv: string[]): SchedulerConfig {
  return completeWith(gates, file, ...argv);
}

function completeWith(switched: typeof gates, file: string | undefined, ...argv: string[]): SchedulerConfig {
  const path = join(directory, `${++count}.yaml`);
  if (file !== undefined) writeFileSync(path, file);
  const parsed = parseFlags(kubeScheduler.flags, file === undefined ? argv : [`--config=${path}`, ...argv]);
  return completeConfig(parsed.values, parsed.set, switched);
}
const file = (text: string, version = "v1beta3"): string =>
  `apiVersion: kubescheduler.config.k8s.io/${version}\nkind: KubeSchedulerConfiguration\n${text}`;

test("--write-config-to writes every default, in upstream's form", () => {
  const yaml = asYaml(complete(undefined, "--kubeconfig=/k"));
  assert.equal(
    yaml.slice(0, yaml.indexOf("profiles:")),
    `apiVersion: kubescheduler.config.k8s.io/v1beta3
clientConnection:
  acceptContentTypes: ""
  burst: 100
  contentType: application/vnd.kubernetes.protobuf
  kubeconfig: /k
  qps: 50
enableContentionProfiling: true
enableProfiling: true
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  resourceLock: leases
  resourceName: kube-scheduler
  resourceNamespace: kube-system
  retryPeriod: 2s
parallelism: 16
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
`,
  );
  assert.match(yaml, /multiPoint:\n {6}enabled:\n {6}- name: PrioritySort\n {8}weight: 0\n/);
  assert.match(yaml, /- name: TaintToleration\n {8}weight: 3\n/);
});

test("a written configuration is read back as the same", () => {
  for (const version of ["v1beta3", "v1beta2"]) {
    const yaml = asYaml(complete(file("profiles: [{schedulerName: a}, {schedulerName: b}]\n", version)));
    assert.equal(asYaml(complete(yaml)), yaml);
  }
});

test("v1beta2 has its own plugins for each point and its own weights", () => {
  const [profile] = complete(file("", "v1beta2")).profiles;
  assert.deepEqual(profile?.plugins.multiPoint.enabled, []);
  assert.deepEqual(
    profile?.plugins.score.enabled.find(({ name }) => name === "TaintToleration"),
    { name: "TaintToleration", weight: 1 },
  );
});

test("v1beta2 does not know multiPoint, and keeps no list of what is disabled", () => {
  const plugins = "{multiPoint: {enabled: [{name: SelectorSpread}]}, score: {disabled: [{name: ImageLocality}]}}";
  const [profile] = complete(file(`profiles: [{plugins: ${plugins}}]\n`, "v1beta2")).profiles;
  assert.deepEqual(profile?.plugins.multiPoint, { enabled: [], disabled: [] });
  assert.deepEqual(profile?.plugins.score.disabled, []);
  assert.ok(!profile?.plugins.score.enabled.some(({ name }) => name === "ImageLocality"));
});

test("a profile disables, reconfigures and adds", () => {
  const [profile] = complete(
    file(`profiles:
- plugins:
    multiPoint: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 9}, {name: SelectorSpread}]}
    score: {disabled: [{name: '*'}]}
  pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 50}
`),
  ).profiles;
  const names = profile?.plugins.multiPoint.enabled.map(({ name, weight }) => `${name}:${weight}`) ?? [];
  assert.ok(names.includes("NodeAffinity:9") && !names.some((name) => name.startsWith("ImageLocality")));
  assert.equal(names.at(-1), "SelectorSpread:0");
  assert.deepEqual(profile?.plugins.score.disabled, [{ name: "*", weight: 0 }]);
  assert.equal(profile?.args.InterPodAffinity.hardPodAffinityWeight, 50);
  assert.equal(profile?.args.DefaultPreemption.minCandidateNodesAbsolute, 100);
});

test("with a file only the leader election flags still take effect", () => {
  const config = complete(
    file("clientConnection: {kubeconfig: /in-file, qps: 7}\nleaderElection: {resourceName: mine, leaseDuration: 30s}\n"),
    "--kubeconfig=/flag",
    "--kube-api-qps=99",
    "--lock-object-name=flag",
    "--leader-elect-lease-duration=40s",
  );
  assert.equal(config.clientConnection.kubeconfig, "/in-file");
  assert.equal(config.clientConnection.qps, 7);
  assert.equal(config.leaderElection.resourceName, "mine");
  assert.equal(config.leaderElection.leaseDurationMs, 40_000);
});

test("--lock-object-name and -namespace name the lock, unless the newer flags do", () => {
  const old = complete(undefined, "--lock-object-name=n", "--lock-object-namespace=ns").leaderElection;
  assert.deepEqual([old.resourceName, old.resourceNamespace], ["n", "ns"]);
  const both = complete(undefined, "--lock-object-name=n", "--leader-elect-resource-name=newer").leaderElection;
  assert.equal(both.resourceName, "newer");
});

test("resources with ignoredByScheduler of an extender are not counted", () => {
  const { profiles } = complete(
    file("extenders: [{urlPrefix: 'http://x', managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}]\n"),
  );
  assert.deepEqual(profiles[0]?.args.NodeResourcesFit.ignoredResources, ["example.com/gpu"]);
});

const args = (name: string, text: string): string => `profiles: [{pluginConfig: [{name: ${name}, args: ${text}}]}]\n`;
const at = "profiles[0].pluginConfig[0].args";

for (const [text, want] of [
  ["parallelism: 0\n", "parallelism: Invalid value: 0: should be an integer value greater than zero"],
  ["percentageOfNodesToScore: 101\n", "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
  ["podInitialBackoffSeconds: 0\n", "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
  [
    "podMaxBackoffSeconds: 1\npodInitialBackoffSeconds: 2\n",
    "podMaxBackoffSeconds: Invalid value: 1: must be greater than or equal to PodInitialBackoffSeconds",
  ],
  ["profile: []\n", 'strict decoding error: unknown field "profile"'],
  ["profiles: [{plugin: {}}]\n", 'strict decoding error: unknown field "profiles[0].plugin"'],
  [
    "parallelism: many\n",
    "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
  ],
  ["profiles: [{schedulerName: a}, {}]\n", "profiles[1].schedulerName: Required value"],
  [
    "profiles: [{schedulerName: a}, {schedulerName: a}]\n",
    'profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"',
  ],
  [
    "profiles: [{pluginConfig: [{name: NodeAffinity, args: {}}, {name: NodeAffinity, args: {}}]}]\n",
    'profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
  ],
  [
    "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p}]\n",
    "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
  ],
  [
    "extenders: [{bindVerb: b}, {bindVerb: b}]\n",
    'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
  ],
  [
    "extenders: [{managedResources: [{name: cpu}]}]\n",
    'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
  ],
  [
    args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
    `${at}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]`,
  ],
  [
    args("InterPodAffinity", "{weight: 1}"),
    'decoding args for plugin InterPodAffinity: strict decoding error: unknown field "weight"',
  ],
  [
    args("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"),
    `[${at}.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute, ${at}.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]`,
  ],
  [
    args("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: []}}}"),
    `${at}.shape: Required value: at least one point must be specified`,
  ],
  [
    args("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}"),
    `${at}.ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can't contain '/'`,
  ],
  [
    args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}"),
    `${at}.resources[0].weight: Invalid value: 2: must be 1`,
  ],
  [
    args("PodTopologySpread", "{defaultingType: Some}"),
    `${at}.defaultingType: Unsupported value: "Some": supported values: "System", "List"`,
  ],
  [
    args(
      "PodTopologySpread",
      "{defaultingType: System, defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]}",
    ),
    `${at}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty`,
  ],
  [
    args(
      "PodTopologySpread",
      "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}",
    ),
    `${at}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)`,
  ],
  [
    args("VolumeBinding", "{shape: [{utilization: 0, score: 1}]}"),
    /shape: Invalid value: .*: unexpected field `shape`, remove it or turn on the feature gate VolumeCapacityPriority$/,
  ],
  [
    args("VolumeBinding", "{bindTimeoutSeconds: -1}"),
    `${at}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value`,
  ],
] as const) {
  test(`refuses ${text.trim()}`, () => assert.throws(() => complete(file(text)), { message: want }));
}

test("v1beta1 is refused", () => {
  const message =
    'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta1" in scheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme/scheme.go:30"';
  assert.throws(() => complete(file("", "v1beta1")), { message });
});

for (const [address, ok] of [
  ["", true],
  ["0.0.0.0:0", true],
  ["0.0.0.0:10251", false],
] as const) {
  test(`a plain port ${JSON.stringify(address)} is ${ok ? "accepted" : "refused"}`, () => {
    const text = file(`healthzBindAddress: ${JSON.stringify(address)}\n`, "v1beta2");
    if (ok) assert.equal(complete(text).healthzBindAddress, address);
    else assert.throws(() => complete(text), { message: /must be empty or with an explicit 0 port$/ });
  });
}

test("with VolumeCapacityPriority volumes are scored by the default shape or the configured one", () => {
  const [byDefault] = completeWith(withCapacity, file("", "v1beta2")).profiles;
  assert.deepEqual(byDefault?.args.VolumeBinding.shape, [
    { utilization: 0, score: 0 },
    { utilization: 100, score: 10 },
  ]);
  assert.deepEqual(byDefault?.plugins.score.enabled.at(-1), { name: "VolumeBinding", weight: 1 });
  const shape = "[{utilization: 0, score: 10}, {utilization: 100, score: 0}]";
  const [own] = completeWith(withCapacity, file(args("VolumeBinding", `{shape: ${shape}}`))).profiles;
  assert.equal(own?.args.VolumeBinding.shape?.[0]?.score, 10);
  assert.throws(() => completeWith(withCapacity, file(args("VolumeBinding", "{shape: [{utilization: 101, score: 0}]}"))), {
    message: `${at}.shape[0].utilization: Invalid value: 101: not in valid range [0, 100]`,
  });
});
