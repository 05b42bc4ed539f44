import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { type TestContext, test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { fieldAt, ineffectiveFields, unknownFields } from "@coxswain/apimachinery/flags/settings";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { AgentConfig } from "./agent-config.ts";
import { newAgentConfig } from "./config.ts";
import { kubelet } from "./flags.ts";
import { effectiveConfiguration } from "./settings/effective.ts";
import { agentSettings, kubeletConfiguration } from "./settings/table.ts";

function configure(...argv: string[]): AgentConfig {
  const { values, set } = parseFlags(kubelet.flags, [
    "--container-runtime=remote",
    "--container-runtime-endpoint=unix:///run/c.sock",
    ...argv,
  ]);
  return newAgentConfig(values, set);
}

async function file(t: TestContext, fields: Record<string, unknown>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-config-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "kubelet.yaml");
  await writeFile(path, JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...fields }));
  return path;
}

test("flags alone leave the kubelet API open, a file closes it", async (t) => {
  assert.partialDeepStrictEqual(configure(), { anonymousAuth: true, webhookAuth: false, authorizationMode: "AlwaysAllow" });
  const path = await file(t, {});
  assert.partialDeepStrictEqual(configure(`--config=${path}`), {
    anonymousAuth: false,
    webhookAuth: true,
    authorizationMode: "Webhook",
  });
});

test("the configuration in effect has flags and defaults in the fields of the file, without zero values that are defaults", async (t) => {
  const path = await file(t, {
    podPidsLimit: 5,
    registryPullQPS: 0,
    readOnlyPort: 0,
    runOnce: true,
    logging: { format: "text" },
    registerWithTaints: [{ key: "a", effect: "NoSchedule" }],
  });
  const shown = effectiveConfiguration(
    configure(`--config=${path}`, "--max-pods=30", "--runonce=false", "--cpu-cfs-quota=false"),
  );
  hasFields(shown, {
    maxPods: 30,
    podPidsLimit: 5,
    registryPullQPS: 0,
    cpuCFSQuota: false,
    cgroupsPerQOS: true,
    syncFrequency: "1m0s",
    shutdownGracePeriod: "0s",
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true, cacheTTL: "2m0s" } },
    logging: { format: "text" },
    registerWithTaints: [{ key: "a", effect: "NoSchedule" }],
  });
  const absent = ["apiVersion", "readOnlyPort", "runOnce", "kubeReserved", "staticPodURL", "reservedMemory"];
  assert.deepEqual(
    absent.filter((field) => field in shown),
    [],
  );
});

test("a flag wins over the file, the file over the defaults", async (t) => {
  const path = await file(t, {
    port: 1234,
    maxPods: 20,
    syncFrequency: "5s",
    authentication: { x509: { clientCAFile: "/ca" } },
    evictionHard: { "memory.available": "1Mi" },
    eventRecordQPS: 0,
  });
  assert.partialDeepStrictEqual(configure(`--config=${path}`, "--max-pods=30"), {
    port: 1234,
    maxPods: 30,
    syncFrequencyMs: 5_000,
    clientCaFile: "/ca",
    evictionHard: { "memory.available": "1Mi" },
    eventQps: 0,
    healthzPort: 10_248,
    nodeStatusUpdateFrequencyMs: 10_000,
    containerLogMaxSizeBytes: 10 * 1024 ** 2,
  });
});

for (const { argv, want } of [
  { argv: ["--container-log-max-files=1"], want: /containerLogMaxFiles must be >= 2/ },
  {
    argv: ["--image-gc-high-threshold=50", "--image-gc-low-threshold=60"],
    want: /imageGCLowThresholdPercent \(--image-gc-low-threshold\) 60 must be less than/,
  },
  { argv: ["--image-gc-high-threshold=101"], want: /must be between 0 and 100, inclusive/ },
  { argv: ["--authorization-mode=RBAC"], want: /unknown authorization-mode: RBAC/ },
  { argv: ["--container-runtime=docker"], want: /container runtime "docker" is not built in/ },
  {
    argv: ["--node-labels=kubernetes.io/evil=1"],
    want: /--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix/,
  },
  { argv: ["--register-with-taints=a=b:Sometimes"], want: /invalid taint/ },
  { argv: ["--event-burst=-1"], want: /^invalid configuration: eventBurst \(--event-burst\) -1 must not be a negative number$/ },
  { argv: ["--event-qps=-1"], want: /eventRecordQPS \(--event-qps\) -1 must not be a negative number/ },
  { argv: ["--max-open-files=-1"], want: /maxOpenFiles \(--max-open-files\) -1 must not be a negative number/ },
  { argv: ["--oom-score-adj=-1001"], want: /oomScoreAdj \(--oom-score-adj\) -1001 must be between -1000 and 1000, inclusive/ },
  { argv: ["--iptables-drop-bit=32"], want: /iptablesDropBit \(--iptables-drop-bit\) 32 must be between 0 and 31, inclusive/ },
  { argv: ["--iptables-masquerade-bit=-1"], want: /iptablesMasqueradeBit \(--iptables-masquerade-bit\) -1 must be between/ },
  {
    argv: ["--hairpin-mode=both"],
    want: /option "both" specified for hairpinMode \(--hairpin-mode\). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"/,
  },
  {
    argv: ["--topology-manager-policy=loose"],
    want: /topologyManagerPolicy \(--topology-manager-policy\) "loose" must be one of/,
  },
  { argv: ["--topology-manager-scope=node"], want: /topologyManagerScope \(--topology-manager-scope\) "node" must be one of/ },
  { argv: ["--reserved-cpus=0-"], want: /unable to parse reservedSystemCPUs \(--reserved-cpus\) 0-, error: strconv.Atoi/ },
  {
    argv: ["--reserved-cpus=0", "--kube-reserved-cgroup=/kube"],
    want: /can't use reservedSystemCPUs \(--reserved-cpus\) with systemReservedCgroup/,
  },
  {
    argv: ["--enforce-node-allocatable=kube-reserved"],
    want: /kubeReservedCgroup \(--kube-reserved-cgroup\) must be specified when "kube-reserved" contained/,
  },
  { argv: ["--enforce-node-allocatable=none,pods"], want: /may not contain additional enforcements when "none" is specified/ },
  { argv: ["--enforce-node-allocatable=all"], want: /Valid options are "pods", "system-reserved", "kube-reserved", or "none"/ },
  { argv: ["--cgroups-per-qos=false"], want: /is not supported unless cgroupsPerQOS \(--cgroups-per-qos\) is set to true/ },
  { argv: ["--qos-reserved=cpu=10%"], want: /cannot reserve "cpu" resource/ },
  { argv: ["--qos-reserved=memory=101%"], want: /only percentages between 0 and 100 are allowed/ },
  { argv: ["--qos-reserved=memory=1000%"], want: /only percentages between 0 and 100 are allowed/ },
  { argv: ["--qos-reserved=memory=-1%"], want: /only percentages between 0 and 100 are allowed/ },
  { argv: ["--qos-reserved=memory=5"], want: /percentage specified in resource reservation 5 does not end in %/ },
  { argv: ["--qos-reserved=memory=x%"], want: /strconv.ParseInt: parsing "x": invalid syntax/ },
  { argv: ["--reserved-memory=0:cpu=1"], want: /memory type conversion error, unknown type: "cpu"/ },
  { argv: ["--reserved-memory=memory=1Gi"], want: /the reserved memory has incorrect format/ },
  { argv: ["--reserved-memory=0:memory=1Gi=2Gi"], want: /the reserved limit has incorrect value, .* got memory=1Gi=2Gi/ },
  { argv: ["--reserved-memory=0:memory=0"], want: /reserved memory may not be zero for NUMA node 0 and resource "memory"/ },
  {
    argv: ["--reserved-memory=0:memory=1Gi", "--reserved-memory=0:memory=1Gi"],
    want: /the reserved memory has a duplicate value for NUMA node 0 and resource "memory"/,
  },
  {
    argv: ["--system-cgroups=/system"],
    want: /systemCgroups \(--system-cgroups\) was specified and cgroupRoot \(--cgroup-root\) was not specified/,
  },
  { argv: ["--exit-on-lock-contention"], want: /^cannot exit on lock file contention: no lock file specified$/ },
  {
    argv: ["--dynamic-config-dir=/dynamic"],
    want: /^the DynamicKubeletConfig feature gate must be enabled in order to use the --dynamic-config-dir flag$/,
  },
  {
    argv: ["--rotate-server-certificates", "--feature-gates=RotateKubeletServerCertificate=false"],
    want: /serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate/,
  },
  {
    argv: ["--topology-manager-policy=restricted", "--feature-gates=TopologyManager=false"],
    want: /topologyManagerPolicy restricted requires feature gate TopologyManager/,
  },
  { argv: ["--feature-gates=NoSuchGate=true"], want: /^unrecognized feature gate: NoSuchGate$/ },
  { argv: ["--config=/no/such/file"], want: /failed to load config file \/no\/such\/file/ },
]) {
  test(`refuses ${argv.join(" ")}`, () => assert.throws(() => configure(...argv), { message: want }));
}

test("the systemd cgroup driver is used when the file or a flag selects it, as kubeadm does", async (t) => {
  assert.equal(configure().cgroupDriver, "cgroupfs");
  const path = await file(t, { cgroupDriver: "systemd" });
  assert.equal(configure(`--config=${path}`).cgroupDriver, "systemd");
  assert.equal(configure(`--config=${path}`, "--cgroup-driver=cgroupfs").cgroupDriver, "cgroupfs");
});

test("containers are throttled from 80 % of their memory limit, or from the share in the file", async (t) => {
  assert.equal(configure().memoryThrottlingFactor, 0.8);
  assert.equal(configure(`--config=${await file(t, { memoryThrottlingFactor: 1 })}`).memoryThrottlingFactor, 1);
  for (const factor of [0, 1.1]) {
    const wrong = await file(t, { memoryThrottlingFactor: factor });
    const message = `invalid configuration: memoryThrottlingFactor ${factor} must be greater than 0 and less than or equal to 1.0`;
    assert.throws(() => configure(`--config=${wrong}`), { message });
  }
});

test("relative paths in the file are resolved against the file's folder, which may be named by a relative path, too", async (t) => {
  const path = await file(t, {
    staticPodPath: "manifests",
    authentication: { x509: { clientCAFile: "pki/ca.crt" } },
    resolvConf: "resolv.conf",
    volumePluginDir: "../plugins",
    tlsCertFile: "tls.crt",
    tlsPrivateKeyFile: "tls.key",
    kubeletCgroups: "kubelet",
  });
  const folder = dirname(path);
  for (const named of [path, relative(process.cwd(), path)]) {
    assert.partialDeepStrictEqual(configure(`--config=${named}`), {
      staticPodPath: join(folder, "manifests"),
      clientCaFile: join(folder, "pki/ca.crt"),
      resolvConf: join(folder, "resolv.conf"),
      volumePluginDir: join(dirname(folder), "plugins"),
      tlsCertFile: join(folder, "tls.crt"),
      tlsPrivateKeyFile: join(folder, "tls.key"),
      kubeletCgroups: "kubelet",
    });
  }
  const { resolvConf, tlsCertFile } = configure(`--config=${await file(t, { resolvConf: "/r" })}`);
  assert.deepEqual([resolvConf, tlsCertFile], ["/r", ""]);
});

test("gates of the machine's own file are overridden by another file, and both by flags", async (t) => {
  const path = await file(t, { featureGates: { NodeSwap: false, SeccompDefault: false } });
  const { values, set } = parseFlags(kubelet.flags, [
    "--container-runtime=remote",
    `--config=${path}`,
    "--feature-gates=MemoryQoS=false,NodeSwap=true",
  ]);
  const local = { ExpandedDNSConfig: true, SeccompDefault: true, MemoryQoS: true };
  const want = { ExpandedDNSConfig: true, NodeSwap: true, SeccompDefault: false, MemoryQoS: false };
  assert.deepEqual(newAgentConfig(values, set, local).featureGates, want);
});

test("--dynamic-config-dir needs its gate among the flags: the file's comes too late", async (t) => {
  const path = await file(t, { featureGates: { DynamicKubeletConfig: true } });
  const message = "the DynamicKubeletConfig feature gate must be enabled in order to use the --dynamic-config-dir flag";
  assert.throws(() => configure(`--config=${path}`, "--dynamic-config-dir=/dynamic"), { message });
  const gate = "--feature-gates=DynamicKubeletConfig=true";
  assert.equal(configure(gate, "--dynamic-config-dir=/dynamic").dynamicConfigDir, "/dynamic");
});

for (const { fields, want } of [
  { fields: { maxPods: "110" }, want: "string into Go struct field KubeletConfiguration.maxPods of type int32" },
  { fields: { podPidsLimit: 1.5 }, want: "number 1.5 into Go struct field KubeletConfiguration.podPidsLimit of type int64" },
  { fields: { clusterDNS: "10.0.0.10" }, want: "string into Go struct field KubeletConfiguration.clusterDNS of type []string" },
  { fields: { evictionHard: { pid: 1 } }, want: "number into Go struct field KubeletConfiguration.evictionHard of type string" },
  {
    fields: { kubeReserved: [] },
    want: "array into Go struct field KubeletConfiguration.kubeReserved of type map[string]string",
  },
  {
    fields: { authentication: { anonymous: { enabled: "no" } } },
    want: "string into Go struct field KubeletAnonymousAuthentication.authentication.anonymous.enabled of type bool",
  },
]) {
  test(`a file with a value of another type ends the start: ${JSON.stringify(fields)}`, async (t) => {
    const path = await file(t, fields);
    const message = `failed to load config file ${path}: failed to decode: json: cannot unmarshal ${want}`;
    assert.throws(() => configure(`--config=${path}`), { message });
  });
}

test("unknown fields are reported at any depth, and the rest of the file takes effect", async (t) => {
  const path = await file(t, { maxPodz: 1, maxPods: 20, authentication: { x509: { caFile: "a" } } });
  const { maxPods, written } = configure(`--config=${path}`);
  assert.deepEqual([maxPods, unknownFields(kubeletConfiguration, written)], [20, ["maxPodz", "authentication.x509.caFile"]]);
});

test("fields without an effect are reported", async (t) => {
  const path = await file(t, { enableContentionProfiling: true, readOnlyPort: 0 });
  assert.deepEqual(ineffectiveFields(agentSettings, configure(`--config=${path}`).written), ["enableContentionProfiling"]);
  const field = "configMapAndSecretChangeDetectionStrategy";
  for (const [value, want] of [
    ["Get", []],
    ["Watch", [field]],
  ] as const) {
    const { written } = configure(`--config=${await file(t, { [field]: value })}`);
    assert.deepEqual(ineffectiveFields(agentSettings, written), want, value);
  }
});

test("reads taints and labels", () => {
  hasFields(configure("--register-with-taints=a=b:NoSchedule,c:NoExecute", "--node-labels=node.kubernetes.io/role=x,team=y"), {
    registerWithTaints: [
      { key: "a", value: "b", effect: "NoSchedule" },
      { key: "c", effect: "NoExecute" },
    ],
    nodeLabels: { "node.kubernetes.io/role": "x", team: "y" },
  });
});

test("memory is reserved by NUMA node, in one flag or several", async (t) => {
  const want = [
    { numaNode: 0, limits: { memory: "1Gi", "hugepages-2Mi": "2Gi" } },
    { numaNode: 1, limits: { memory: "500Mi" } },
  ];
  const one = "--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Gi;1:memory=500Mi";
  assert.deepEqual(configure(one).reservedMemory, want);
  const two = ["--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Gi", "--reserved-memory=1:memory=500Mi"];
  assert.deepEqual(configure(...two).reservedMemory, want);
  assert.deepEqual(configure(`--config=${await file(t, { reservedMemory: want })}`).reservedMemory, want);
});

test("the CFS period is 100 ms, and its gate is needed for another", () => {
  assert.equal(configure("--cpu-cfs-quota-period=100ms").cpuCfsPeriodMs, 100);
  assert.throws(() => configure("--cpu-cfs-quota-period=10ms"), {
    message:
      "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {10ms} requires feature gate CustomCPUCFSQuotaPeriod",
  });
  assert.equal(configure("--cpu-cfs-quota-period=10ms", "--feature-gates=CustomCPUCFSQuotaPeriod=true").cpuCfsPeriodMs, 10);
  assert.throws(
    () => configure("--cpu-cfs-quota-period=2s", "--feature-gates=CustomCPUCFSQuotaPeriod=true"),
    /cpuCFSQuotaPeriod \(--cpu-cfs-quota-period\) \{2s\} must be between 1ms and 1sec, inclusive/,
  );
});

for (const { gate, behavior, want } of [
  { gate: true, behavior: "UnlimitedSwap", want: undefined },
  { gate: true, behavior: "Lots", want: /memorySwap\.swapBehavior "Lots" must be one of: "", "LimitedSwap", or "UnlimitedSwap"/ },
  { gate: false, behavior: "LimitedSwap", want: /memorySwap\.swapBehavior cannot be set when NodeSwap feature flag is disabled/ },
]) {
  test(`swapBehavior ${behavior} is ${want ? "refused" : "taken"} with NodeSwap=${gate}`, async (t) => {
    const path = await file(t, { memorySwap: { swapBehavior: behavior }, featureGates: { NodeSwap: gate } });
    if (want) assert.throws(() => configure(`--config=${path}`), { message: want });
    else assert.equal(configure(`--config=${path}`).swapBehavior, behavior);
  });
}

const byPriority = [{ priority: 0, shutdownGracePeriodSeconds: 10 }];
for (const { fields, gates = {}, want } of [
  { fields: { shutdownGracePeriod: "30s", shutdownGracePeriodCriticalPods: "30s" }, want: [] },
  { fields: { shutdownGracePeriod: "1s" }, want: [] },
  {
    fields: { shutdownGracePeriod: "10s", shutdownGracePeriodCriticalPods: "11s" },
    want: ["shutdownGracePeriodCriticalPods {11s} must be <= shutdownGracePeriod {10s}"],
  },
  {
    fields: { shutdownGracePeriod: "999ms", shutdownGracePeriodCriticalPods: "1ms" },
    want: [
      "shutdownGracePeriod {999ms} must be either zero or otherwise >= 1 sec",
      "shutdownGracePeriodCriticalPods {1ms} must be either zero or otherwise >= 1 sec",
    ],
  },
  {
    fields: { shutdownGracePeriod: "30s" },
    gates: { GracefulNodeShutdown: false },
    want: ["specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"],
  },
  { fields: {}, gates: { GracefulNodeShutdown: false }, want: [] },
  {
    fields: { shutdownGracePeriodByPodPriority: byPriority },
    want: ["Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"],
  },
  {
    fields: { shutdownGracePeriodByPodPriority: byPriority },
    gates: { GracefulNodeShutdownBasedOnPodPriority: true },
    want: [],
  },
  {
    fields: { shutdownGracePeriodByPodPriority: byPriority, shutdownGracePeriod: "10s" },
    gates: { GracefulNodeShutdownBasedOnPodPriority: true },
    want: ["Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"],
  },
]) {
  const gated = Object.keys(gates).length === 0 ? "" : ` with ${JSON.stringify(gates)}`;
  test(`${JSON.stringify(fields)}${gated} is ${want.length === 0 ? "taken" : "refused"}`, async (t) => {
    const path = await file(t, { ...fields, featureGates: gates });
    let message = "";
    try {
      configure(`--config=${path}`);
    } catch (err) {
      message = (err as Error).message;
    }
    for (const problem of want) assert.ok(message.includes(`invalid configuration: ${problem}`), message);
    assert.equal(message.split("invalid configuration: ").length - 1, want.length);
  });
}

for (const { label, allowed } of [
  { label: "team", allowed: true },
  { label: "example.com/kubernetes.io", allowed: true },
  { label: "notkubernetes.io/x", allowed: true },
  { label: "kubernetes.io/hostname", allowed: true },
  { label: "kubernetes.io/other", allowed: false },
  { label: "k8s.io/x", allowed: false },
  { label: "app.k8s.io/x", allowed: false },
  { label: "kubelet.kubernetes.io/x", allowed: true },
  { label: "a.node.kubernetes.io/x", allowed: true },
  { label: "node-role.kubernetes.io/control-plane", allowed: false },
  { label: "node.kubernetes.io/windows-build", allowed: true },
]) {
  test(`--node-labels=${label}=1 is ${allowed ? "taken" : "refused"}`, () => {
    const start = () => configure(`--node-labels=${label}=1`);
    if (allowed) assert.deepEqual(start().nodeLabels, { [label]: "1" });
    else assert.throws(start, /must begin with an allowed prefix/);
  });
}

test("each label that a node may not set is refused", () => {
  const labels = ["team", "kubernetes.io/first", "kubelet.kubernetes.io/x", "k8s.io/second"].map((label) => `${label}=1`);
  assert.throws(
    () => configure(`--node-labels=${labels.join()}`),
    (err: Error) => {
      const refused = [...err.message.matchAll(/labels specified with --node-labels: \[(.*?)\]/g)].map(([, label]) => label);
      return refused.join() === "kubernetes.io/first,k8s.io/second";
    },
  );
});

for (const argv of [
  ["--oom-score-adj=-1000"],
  ["--oom-score-adj=1000"],
  ["--iptables-drop-bit=31", "--iptables-masquerade-bit=0"],
  ["--iptables-drop-bit=0", "--iptables-masquerade-bit=31"],
  ["--image-gc-high-threshold=100", "--image-gc-low-threshold=0"],
  ["--container-log-max-files=2"],
  ["--event-qps=0", "--event-burst=0", "--max-open-files=0", "--max-pods=0", "--pods-per-core=0"],
  ["--qos-reserved=memory=100%"],
  ["--qos-reserved=memory=0%"],
  ["--enforce-node-allocatable=none", "--cgroups-per-qos=false"],
  ["--enforce-node-allocatable=", "--cgroups-per-qos=false"],
  ["--enforce-node-allocatable=pods,kube-reserved", "--kube-reserved-cgroup=/kube"],
  ["--exit-on-lock-contention", "--lock-file=/run/kubelet.lock"],
  ["--system-cgroups=/system", "--cgroup-root=/"],
  ["--reserved-cpus=0-1"],
]) {
  test(`takes ${argv.join(" ")}`, () => assert.doesNotThrow(() => configure(...argv)));
}

for (const argv of [
  ["--oom-score-adj=1001"],
  ["--iptables-drop-bit=-1"],
  ["--iptables-masquerade-bit=32"],
  ["--image-gc-low-threshold=-1"],
  ["--reserved-cpus=0", "--system-reserved-cgroup=/system"],
  ["--enforce-node-allocatable=pods,system-reserved"],
  ["--enforce-node-allocatable=kube-reserved,none,pods", "--kube-reserved-cgroup=/kube"],
  ["--enforce-node-allocatable=system-reserved", "--system-reserved-cgroup=/s", "--cgroups-per-qos=false"],
]) {
  test(`refuses as an invalid configuration ${argv.join(" ")}`, () =>
    assert.throws(() => configure(...argv), /invalid configuration: /));
}

for (const [argv, problem] of [
  [
    "--image-gc-high-threshold=60 --image-gc-low-threshold=60",
    "imageGCLowThresholdPercent (--image-gc-low-threshold) 60 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 60",
  ],
  ["--node-status-max-images=-2", "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater"],
  ["--cpu-cfs-quota-period=900us --feature-gates=CustomCPUCFSQuotaPeriod=true", "between 1ms and 1sec, inclusive"],
  ["--topology-manager-scope=pod --feature-gates=TopologyManager=false", "requires feature gate TopologyManager"],
  ["--enforce-node-allocatable=pods,", 'option "" specified for enforceNodeAllocatable'],
  ["--eviction-hard=memory.available<101%", "eviction percentage threshold memory.available must be >= 0% and <= 100%: 101%"],
  ["--eviction-soft=nodefs.available<1Gi", "grace period must be specified for the soft eviction threshold nodefs.available"],
  ["--eviction-soft-grace-period=memory.available=soon", "grace period of memory.available is not a duration: soon"],
  ["--container-log-max-size=much", "containerLogMaxSize is not a quantity"],
  ["--enforce-node-allocatable=pods,none", 'may not contain additional enforcements when "none" is specified'],
  ...["--max-pods", "--pods-per-core", "--registry-qps", "--registry-burst", "--kube-api-qps", "--kube-api-burst"].map((flag) => [
    `${flag}=-1`,
    `(${flag}) -1 must not be a negative number`,
  ]),
  ...["--port=0", "--port=65536"].map((flag) => [flag, "must be between 1 and 65535, inclusive"]),
  ...["--healthz-port", "--read-only-port"].flatMap((flag) =>
    [-1, 65_536].map((port) => [`${flag}=${port}`, "must be between 0 and 65535, inclusive"]),
  ),
  ...["--image-gc-high-threshold=-1", "--image-gc-low-threshold=101"].map((flag) => [
    flag,
    "must be between 0 and 100, inclusive",
  ]),
] as const) {
  test(`the problem of ${argv} is told`, () => {
    assert.throws(
      () => configure(...argv!.split(" ")),
      ({ message }: Error) => message.includes("invalid configuration: ") && message.includes(problem!),
    );
  });
}

test("a lease ends after a positive number of seconds", async (t) => {
  const path = await file(t, { nodeLeaseDurationSeconds: -1 });
  const message = "invalid configuration: nodeLeaseDurationSeconds must be greater than 0";
  assert.throws(() => configure(`--config=${path}`), { message });
});

test("numbers for which zero is the default have it also for a flag of zero, others stay zero", () => {
  const names = ["max-pods", "max-open-files", "event-burst", "kube-api-qps", "kube-api-burst", "registry-burst"];
  const same = ["registry-qps", "event-qps", "pods-per-core", "healthz-port", "read-only-port", "minimum-image-ttl-duration"];
  const durations = ["eviction-pressure-transition-period", "node-status-update-frequency", "volume-stats-agg-period"];
  assert.partialDeepStrictEqual(configure(...[...names, ...same, ...durations].map((name) => `--${name}=0`)), {
    maxPods: 110,
    maxOpenFiles: 1_000_000,
    eventBurst: 10,
    kubeApiQps: 5,
    kubeApiBurst: 10,
    registryBurst: 10,
    registryQps: 0,
    eventQps: 0,
    podsPerCore: 0,
    healthzPort: 0,
    readOnlyPort: 0,
    imageMinAgeMs: 0,
    evictionTransitionMs: 0,
    nodeStatusUpdateFrequencyMs: 0,
    volumeStatsMs: 0,
  });
});

test("a file may say when a taint was added, and grace periods of any length", async (t) => {
  const group = { priority: 1, shutdownGracePeriodSeconds: 2 ** 40 };
  const path = await file(t, {
    registerWithTaints: [{ key: "a", effect: "NoExecute", timeAdded: "2026-01-01T00:00:00Z" }],
    shutdownGracePeriodByPodPriority: [group],
    featureGates: { GracefulNodeShutdownBasedOnPodPriority: true },
  });
  const { shutdownGroups, written } = configure(`--config=${path}`);
  assert.deepEqual([shutdownGroups, unknownFields(kubeletConfiguration, written)], [[group], []]);
});

test("anonymous requests are shown in the configuration in effect as they are, whoever allows them", async (t) => {
  const anonymousIn = (config: AgentConfig): unknown =>
    fieldAt(effectiveConfiguration(config), "authentication.anonymous.enabled");
  const open = await file(t, { authentication: { anonymous: { enabled: true } } });
  const configs = [configure(), configure(`--config=${open}`), configure("--anonymous-auth=false")];
  assert.deepEqual(configs.map(anonymousIn), [true, true, false]);
});

test("the label of Windows' build is not listed as one that may be set", () => {
  assert.throws(
    () => configure("--node-labels=kubernetes.io/evil=1"),
    ({ message }: Error) => message.includes("node.kubernetes.io/instance-type, ") && !message.includes("windows-build"),
  );
});

test("headers for the URL of static pods are given by name, by the flag or in the file", async (t) => {
  assert.deepEqual(configure().staticPodUrlHeader, {});
  const flag = "--manifest-url-header=X-Team:a,X-Other:c,X-Team:b";
  assert.deepEqual(configure(flag).staticPodUrlHeader, { "X-Team": ["a", "b"], "X-Other": ["c"] });
  const path = await file(t, { staticPodURLHeader: { "X-Team": ["f"] } });
  assert.deepEqual(configure(`--config=${path}`).staticPodUrlHeader, { "X-Team": ["f"] });
  assert.deepEqual(configure(`--config=${path}`, "--manifest-url-header=X-Team:a").staticPodUrlHeader, { "X-Team": ["a"] });
});

test("metrics can be disabled by name", () => {
  assert.deepEqual(configure("--disabled-metrics=kubelet_node_name,other").metrics.disabled, ["kubelet_node_name", "other"]);
});

test("each problem of reserved memory in the file is told", async (t) => {
  const reservedMemory = [
    { numaNode: 1, limits: { cpu: "1", memory: "0" } },
    { numaNode: 1, limits: { memory: "1Gi" } },
    { numaNode: 2, limits: { memory: "much" } },
  ];
  const path = await file(t, { reservedMemory });
  const message = [
    'the limit type "cpu" for NUMA node 1 is not allowed, only: "memory", "hugepages-"',
    'reserved memory may not be zero for NUMA node 1 and resource "memory"',
    'reserved memory may not be zero for NUMA node 2 and resource "memory"',
    'the reserved memory has a duplicate value for NUMA node 1 and resource "memory"',
  ];
  assert.throws(
    () => configure(`--config=${path}`),
    (err: Error) => {
      for (const problem of message) assert.ok(err.message.includes(`invalid configuration: ${problem}`), err.message);
      return err.message.split("invalid configuration: ").length === 5;
    },
  );
});

test("a file may enforce nothing by an empty name", async (t) => {
  const path = await file(t, { enforceNodeAllocatable: [""], cgroupsPerQOS: false });
  assert.deepEqual(configure(`--config=${path}`).enforceNodeAllocatable, [""]);
});
