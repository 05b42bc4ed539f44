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

/** Source: pkg/scheduler/apis/config/v1beta3/default_plugins.go, v1beta2/default_plugins.go */
const weights = {
  v1beta3:
    "TaintToleration:3 NodeAffinity:2 NodeResourcesFit:1 PodTopologySpread:2 InterPodAffinity:2 NodeResourcesBalancedAllocation:1 ImageLocality:1",
  v1beta2:
    "NodeResourcesBalancedAllocation:1 ImageLocality:1 InterPodAffinity:1 NodeResourcesFit:1 NodeAffinity:1 PodTopologySpread:2 TaintToleration:1",
};

for (const version of ["v1beta3", "v1beta2"] as const) {
  test(`the plugins of ${version} have upstream's weights`, () => {
    const [profile] = complete(file("", version)).profiles;
    const { multiPoint, score } = profile?.plugins ?? {};
    const weighted = [...(multiPoint?.enabled ?? []), ...(score?.enabled ?? [])].filter(({ weight }) => weight > 0);
    assert.equal(weighted.map(({ name, weight }) => `${name}:${weight}`).join(" "), weights[version]);
  });
}

test("of two entries for a plugin the last takes the default's place, and the other comes after all", () => {
  const text =
    "profiles: [{plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 3}, {name: NodeAffinity, weight: 9}]}}}]\n";
  const enabled = complete(file(text)).profiles[0]?.plugins.multiPoint.enabled ?? [];
  const weights = enabled.filter(({ name }) => name === "NodeAffinity").map(({ weight }) => weight);
  assert.deepEqual([weights, enabled.at(-1)?.weight], [[9, 3], 3]);
});

test("the arguments of plugins are written, and read back", () => {
  const yaml = asYaml(complete(file(args("InterPodAffinity", "{hardPodAffinityWeight: 50}"))));
  assert.equal(complete(yaml).profiles[0]?.args.InterPodAffinity.hardPodAffinityWeight, 50);
  const names = [...yaml.matchAll(/^ {6}kind: (\w+)Args$/gm)].map(([, name]) => name);
  assert.deepEqual(names, [
    "DefaultPreemption",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "PodTopologySpread",
    "VolumeBinding",
  ]);
});

test("v1beta2 has its own plugins for each point", () => {
  const [profile] = complete(file("", "v1beta2")).profiles;
  assert.deepEqual(profile?.plugins.multiPoint.enabled, []);
  const { queueSort, postFilter, reserve, preBind, bind } = profile?.plugins ?? {};
  assert.deepEqual(
    [queueSort, postFilter, reserve, preBind, bind].map((set) => set?.enabled.map(({ name }) => name).join()),
    ["PrioritySort", "DefaultPreemption", "VolumeBinding", "VolumeBinding", "DefaultBinder"],
  );
});

test("settings at their bounds are accepted", () => {
  const text = "percentageOfNodesToScore: 100\nparallelism: 1\nclientConnection: {burst: 1}\npodMaxBackoffSeconds: 1\n";
  assert.equal(complete(file(text)).percentageOfNodesToScore, 100);
  assert.throws(() => complete(file("clientConnection: {burst: -1}\n")), {
    message: "clientConnection.burst: Invalid value: -1: must be non-negative",
  });
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
  const [unchanged] = complete(file("profiles: [{}]\n")).profiles;
  const kept = unchanged?.plugins.multiPoint.enabled.filter(({ name }) => name !== "ImageLocality") ?? [];
  const others = kept.map(({ name, weight }) => (name === "NodeAffinity" ? "NodeAffinity:9" : `${name}:${weight}`));
  assert.deepEqual(names, [...others, "SelectorSpread:0"]);
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

test("resources that an extender manages without ignoredByScheduler are counted", () => {
  const managed = "[{name: example.com/gpu}, {name: example.com/disk, ignoredByScheduler: true}]";
  const { profiles } = complete(file(`extenders: [{urlPrefix: 'http://x', managedResources: ${managed}}]\n`));
  assert.deepEqual(profiles[0]?.args.NodeResourcesFit.ignoredResources, ["example.com/disk"]);
});

test("empty names of the lock in a file are the defaults", () => {
  const text = 'leaderElection: {resourceLock: "", resourceName: "", resourceNamespace: ""}\n';
  const { resourceLock, resourceName, resourceNamespace } = complete(file(text)).leaderElection;
  assert.deepEqual([resourceLock, resourceName, resourceNamespace], ["leases", "kube-scheduler", "kube-system"]);
});

test("each part of the lock's name is required", () => {
  for (const name of ["resource-lock", "resource-namespace", "resource-name"]) {
    const field = name.replace(/-(\w)/, (_, letter: string) => letter.toUpperCase());
    assert.throws(() => complete(undefined, `--leader-elect-${name}=`), {
      message: `leaderElection.${field}: Invalid value: "": ${field} is required`,
    });
  }
});

test("resources ignored for extenders replace those that the profile ignores", () => {
  const extender = "{urlPrefix: 'http://x', managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]}";
  const own = "{name: NodeResourcesFit, args: {ignoredResources: [example.com/disk]}}";
  const { profiles } = complete(file(`extenders: [${extender}]\nprofiles: [{pluginConfig: [${own}]}]\n`));
  assert.deepEqual(profiles[0]?.args.NodeResourcesFit.ignoredResources, ["example.com/gpu"]);
});

test("resources have the weight 1, and a scoring strategy without resources those of the default", () => {
  const fit = (text: string) =>
    complete(file(args("NodeResourcesFit", `{scoringStrategy: ${text}}`))).profiles[0]?.args.NodeResourcesFit.scoringStrategy;
  const cpu = { name: "cpu", weight: 1 };
  assert.deepEqual(fit("{type: MostAllocated, resources: [{name: cpu}]}"), { type: "MostAllocated", resources: [cpu] });
  const both = { type: "MostAllocated", resources: [cpu, { name: "memory", weight: 1 }] };
  assert.deepEqual(fit("{type: MostAllocated, resources: [{name: cpu, weight: 0}]}"), {
    type: "MostAllocated",
    resources: [cpu],
  });
  assert.deepEqual(fit("{type: MostAllocated}"), both);
  assert.deepEqual(fit("{type: MostAllocated, resources: []}"), both);
  assert.equal(fit("{}")?.type, "LeastAllocated");
});

test("a balance without resources is one of the default's, and resources of no weight weigh 1", () => {
  const balanced = (text: string) =>
    complete(file(args("NodeResourcesBalancedAllocation", text))).profiles[0]?.args.NodeResourcesBalancedAllocation.resources;
  const both = ["cpu", "memory"].map((name) => ({ name, weight: 1 }));
  for (const text of ["{}", "{resources: []}"]) assert.deepEqual(balanced(text), both, text);
  assert.deepEqual(balanced("{resources: [{name: memory}]}"), both.slice(1));
});

test("without DefaultPodTopologySpread pods are spread by SelectorSpread, in either version", () => {
  const without = { enabled: (name: string) => name !== "DefaultPodTopologySpread" && gates.enabled(name) };
  for (const version of ["v1beta2", "v1beta3"]) {
    const [profile] = completeWith(without, file("", version)).profiles;
    assert.equal(profile?.args.PodTopologySpread.defaultingType, "List");
    const points = version === "v1beta2" ? (["preScore", "score"] as const) : (["multiPoint"] as const);
    for (const point of points)
      assert.equal(profile?.plugins[point].enabled.at(-1)?.name, "SelectorSpread", `${version} ${point}`);
  }
  const [own] = completeWith(without, file(args("PodTopologySpread", "{defaultingType: System}"))).profiles;
  assert.equal(own?.args.PodTopologySpread.defaultingType, "System");
});

test("the durations of a leader election that is off are not checked", () => {
  const text = "leaderElection: {leaderElect: false, leaseDuration: 1s, renewDeadline: 2s}\n";
  assert.equal(complete(file(text)).leaderElection.enabled, false);
});

test("durations of leader election may be as long as each other", () => {
  const { leaderElection } = complete(file("leaderElection: {leaseDuration: 5s, renewDeadline: 5s, retryPeriod: 5s}\n"));
  assert.deepEqual(
    [leaderElection.leaseDurationMs, leaderElection.renewDeadlineMs, leaderElection.retryPeriodMs],
    [5_000, 5_000, 5_000],
  );
});

test("a duration of leader election of zero or less is refused", () => {
  for (const [flag, field] of [
    ["leader-elect-lease-duration", "leaseDuration"],
    ["leader-elect-renew-deadline", "renewDeadline"],
    ["leader-elect-retry-period", "retryPeriod"],
  ] as const) {
    const message = new RegExp(`leaderElection\\.${field}: Invalid value: "?0s"?: must be greater than zero`);
    assert.throws(() => complete(undefined, `--${flag}=0s`), { message });
  }
});

test("an extender is written with all its fields, its timeout as a duration, and read back as the same", () => {
  const tls = "{insecure: true, serverName: s, certFile: a, keyFile: b, caFile: c, certData: QQ==, keyData: Qg==, caData: Qw==}";
  const verbs = "filterVerb: f, preemptVerb: p, prioritizeVerb: r, weight: 3, bindVerb: b";
  const managed = "[{name: example.com/gpu, ignoredByScheduler: true}]";
  const others = `enableHTTPS: true, httpTimeout: 7s, nodeCacheCapable: true, ignorable: true, managedResources: ${managed}`;
  const extender = `{urlPrefix: 'http://x', ${verbs}, ${others}, tlsConfig: ${tls}}`;
  assert.deepEqual(complete(file(`extenders: [${extender}]\n`)).extenders, [
    {
      urlPrefix: "http://x",
      filterVerb: "f",
      preemptVerb: "p",
      prioritizeVerb: "r",
      weight: 3,
      bindVerb: "b",
      enableHTTPS: true,
      httpTimeout: 7_000,
      nodeCacheCapable: true,
      ignorable: true,
      managedResources: [{ name: "example.com/gpu", ignoredByScheduler: true }],
      tlsConfig: {
        insecure: true,
        serverName: "s",
        certFile: "a",
        keyFile: "b",
        caFile: "c",
        certData: "QQ==",
        keyData: "Qg==",
        caData: "Qw==",
      },
    },
  ]);
  const yaml = asYaml(complete(file(`extenders: [${extender}]\n`)));
  assert.match(yaml, /^ {2}httpTimeout: 7s$/m);
  assert.equal(asYaml(complete(yaml)), yaml);
});

const args = (name: string, text: string): string => `profiles: [{pluginConfig: [{name: ${name}, args: ${text}}]}]\n`;
const at = "profiles[0].pluginConfig[0].args";
const inArgs = (plugin: string): string => `decoding .profiles[0].pluginConfig[0]: decoding args for plugin ${plugin}`;
const inScheme = 'in scheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme/scheme.go:30"';

for (const [text, want] of [
  ["parallelism: 0\n", "parallelism: Invalid value: 0: should be an integer value greater than zero"],
  ["percentageOfNodesToScore: -1\n", "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
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
  ["healthzBindAddress: ''\n", 'strict decoding error: unknown field "healthzBindAddress"'],
  ["metricsBindAddress: ''\n", 'strict decoding error: unknown field "metricsBindAddress"'],
  ["profiles: [{schedulerName: a}, {}]\n", "profiles[1].schedulerName: Required value"],
  ["profiles: [{}, {schedulerName: a}]\n", "profiles[0].schedulerName: Required value"],
  [
    "profiles: [{schedulerName: a}, {schedulerName: a}]\n",
    'profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"',
  ],
  [
    "profiles: [{schedulerName: a}, {schedulerName: a}, {schedulerName: a}]\n",
    '[profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName", profiles[2].schedulerName: Duplicate value: "profiles[1].schedulerName"]',
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
    'extenders: [{managedResources: [{name: "a/b/c"}]}]\n',
    `extenders[0].managedResources[0].name: Invalid value: "a/b/c": a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
  ],
  [
    args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
    `${at}.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]`,
  ],
  [
    args("InterPodAffinity", "{weight: 1}"),
    'decoding .profiles[0].pluginConfig[0]: decoding args for plugin InterPodAffinity: strict decoding error: unknown field "weight"',
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
    args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: memory, weight: -1}]}"),
    `${at}.resources[1].weight: Invalid value: -1: must be 1`,
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
    args(
      "NodeResourcesFit",
      "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 10, score: 1}, {utilization: 10, score: 2}]}}}",
    ),
    `${at}.shape[1].utilization: Invalid value: 10: utilization values must be sorted in increasing order`,
  ],
  [
    args(
      "NodeResourcesFit",
      "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, score: 11}]}}}",
    ),
    `${at}.shape[0].score: Invalid value: 11: not in valid range [0, 10]`,
  ],
  [
    args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: cpu}]}"),
    `${at}.resources[1].name: Duplicate value: "cpu"`,
  ],
  [
    args(
      "PodTopologySpread",
      "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}",
    ),
    `${at}.defaultConstraints[1]: Duplicate value: "{z, DoNotSchedule}"`,
  ],
  [
    args(
      "PodTopologySpread",
      "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}",
    ),
    `${at}.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod`,
  ],
  [
    args(
      "NodeAffinity",
      "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Near}]}}]}}",
    ),
    /addedAffinity\.preferredDuringSchedulingIgnoredDuringExecution\[0\]\.matchExpressions\[0\]\.operator: Unsupported value: "Near"/,
  ],
  [
    args("NodeAffinity", "{kind: NodeAffinityArgs, apiVersion: example.com/v1}"),
    `${inArgs("NodeAffinity")}: no kind "NodeAffinityArgs" is registered for version "example.com/v1" ${inScheme}`,
  ],
  [
    args("NodeAffinity", "{apiVersion: v1beta3}"),
    `${inArgs("NodeAffinity")}: no kind "NodeAffinityArgs" is registered for version "v1beta3" ${inScheme}`,
  ],
  [
    args("NodeAffinity", "{kind: OtherArgs}"),
    `${inArgs("NodeAffinity")}: no kind "OtherArgs" is registered for version "kubescheduler.config.k8s.io/v1beta3" ${inScheme}`,
  ],
  [
    args("NodeAffinity", "{kind: InterPodAffinityArgs}"),
    "decoding .profiles[0].pluginConfig[0]: args for plugin NodeAffinity were not of type NodeAffinityArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io",
  ],
  [
    args("NodeAffinity", "{kind: InterPodAffinityArgs, addedAffinity: {}}"),
    `${inArgs("NodeAffinity")}: strict decoding error: unknown field "addedAffinity"`,
  ],
  [
    "profiles: [{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: Own, args: {a: 1}}, {name: InterPodAffinity, args: {apiVersion: kubescheduler.config.k8s.io/v1beta2}}]}]\n",
    'converting .Profiles[1].PluginConfig[1].Args into internal type: no kind is registered for the type v1beta2.InterPodAffinityArgs in scheme "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta3/conversion.go:41"',
  ],
  [
    "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: PrioritySort}]}}}, {schedulerName: b}]\n",
    /^profiles\[1\]\.plugins\.queueSort: Invalid value: .*: has to match for all profiles$/,
  ],
  [
    "profiles: [{plugins: {queueSort: {enabled: [{name: PrioritySort}, {name: Other}]}}}]\n",
    "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
  ],
  [
    "extenders: [{managedResources: [{name: example.com/gpu}]}, {managedResources: [{name: example.com/gpu}]}]\n",
    'extenders[1].managedResources[0].name: Invalid value: "example.com/gpu": duplicate extender managed resource name',
  ],
  [
    "extenders: [{managedResources: [{name: example.com/gpu}, {name: example.com/gpu}]}]\n",
    'extenders[0].managedResources[1].name: Invalid value: "example.com/gpu": duplicate extender managed resource name',
  ],
  [
    "extenders: [{}, {urlPrefix: 'http://x', prioritizeVerb: p, weight: -1}]\n",
    "extenders[1].weight: Invalid value: -1: must have a positive weight applied to it",
  ],
  [
    "leaderElection: {leaseDuration: 1s, renewDeadline: 2s, retryPeriod: 3s}\n",
    '[leaderElection.leaseDuration: Invalid value: "2s": LeaseDuration must be greater than RenewDeadline, leaderElection.renewDeadline: Invalid value: "3s": RenewDeadline must be greater than RetryPeriod]',
  ],
  [
    args("VolumeBinding", "{bindTimeoutSeconds: -1}"),
    `${at}.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value`,
  ],
] as const) {
  test(`refuses ${text.trim()}`, () => assert.throws(() => complete(file(text)), { message: want }));
}

test("arguments of v1beta3 are refused in a file of v1beta2", () => {
  const text = args("NodeAffinity", "{kind: NodeAffinityArgs, apiVersion: kubescheduler.config.k8s.io/v1beta3}");
  assert.throws(() => complete(file(text, "v1beta2")), {
    message:
      'converting .Profiles[0].PluginConfig[0].Args into internal type: no kind is registered for the type v1beta3.NodeAffinityArgs in scheme "k8s.io/kubernetes/pkg/scheduler/apis/config/v1beta2/conversion.go:41"',
  });
});

test("arguments may name only their version or only their kind", () => {
  for (const type of [
    "apiVersion: kubescheduler.config.k8s.io/v1beta3",
    "kind: InterPodAffinityArgs",
    "apiVersion: ''",
    "kind: ''",
  ]) {
    const [profile] = complete(file(args("InterPodAffinity", `{${type}, hardPodAffinityWeight: 7}`))).profiles;
    assert.equal(profile?.args.InterPodAffinity.hardPodAffinityWeight, 7, type);
  }
});

for (const [what, text] of Object.entries({
  "an empty file": "",
  "a list": "[]",
  "another kind": "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: Other\n",
  "another group": "apiVersion: other/v1beta3\nkind: KubeSchedulerConfiguration\n",
}))
  test(`${what} is refused`, () => assert.throws(() => complete(text), { message: /^no kind "\w*" is registered for version/ }));

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

test("a plain port that is no number of Go's is refused as such", () => {
  for (const [port, why] of [
    ["http", "invalid syntax"],
    ["", "invalid syntax"],
  ]) {
    const text = file(`healthzBindAddress: '0.0.0.0:${port}'\n`, "v1beta2");
    assert.throws(() => complete(text), { message: new RegExp(`strconv.Atoi: parsing "${port}": ${why}$`) });
  }
});

test("a plain address without a port is refused", () => {
  const text = file("metricsBindAddress: localhost\n", "v1beta2");
  assert.throws(() => complete(text), { message: /^metricsBindAddress: Invalid value: .*missing port in address$/ });
});

test("with VolumeCapacityPriority volumes are scored by the default shape or the configured one", () => {
  const [byDefault] = completeWith(withCapacity, file("", "v1beta2")).profiles;
  assert.deepEqual(byDefault?.args.VolumeBinding.shape, [
    { utilization: 0, score: 0 },
    { utilization: 100, score: 10 },
  ]);
  const [empty] = completeWith(withCapacity, file(args("VolumeBinding", "{shape: []}"))).profiles;
  assert.deepEqual(empty?.args.VolumeBinding.shape, byDefault?.args.VolumeBinding.shape);
  assert.deepEqual(byDefault?.plugins.score.enabled.at(-1), { name: "VolumeBinding", weight: 1 });
  const shape = "[{utilization: 0, score: 10}, {utilization: 100, score: 0}]";
  const [own] = completeWith(withCapacity, file(args("VolumeBinding", `{shape: ${shape}}`))).profiles;
  assert.equal(own?.args.VolumeBinding.shape?.[0]?.score, 10);
  assert.throws(() => completeWith(withCapacity, file(args("VolumeBinding", "{shape: [{utilization: 101, score: 0}]}"))), {
    message: `${at}.shape[0].utilization: Invalid value: 101: not in valid range [0, 100]`,
  });
});

test("the arguments of a plugin that no point enables are not written", () => {
  const plugins =
    "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: NodeAffinity}, {name: DefaultBinder}]}}";
  const yaml = asYaml(complete(file(`profiles: [{plugins: ${plugins}}]\n`)));
  assert.deepEqual(
    [...yaml.matchAll(/^ {6}kind: (\w+)Args$/gm)].map(([, name]) => name),
    ["NodeAffinity"],
  );
});
