import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { fieldAt } from "@coxswain/apimachinery/flags/settings";
import type { AgentConfig } from "../agent-config.ts";
import { newAgentConfig } from "../config.ts";
import { kubelet } from "../flags.ts";
import { effectiveConfiguration } from "./effective.ts";

function configure(...argv: string[]): AgentConfig {
  const { values, set } = parseFlags(kubelet.flags, ["--container-runtime=remote", ...argv]);
  return newAgentConfig(values, set);
}

function configured(t: TestContext, fields: Readonly<Record<string, unknown>>, ...argv: string[]): AgentConfig {
  const dir = mkdtempSync(join(tmpdir(), "cox-settings-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "kubelet.yaml");
  writeFileSync(path, JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...fields }));
  return configure(`--config=${path}`, ...argv);
}

/** Source: pkg/kubelet/apis/config/v1beta1/defaults.go */
const defaults = {
  enableServer: true,
  syncFrequency: "1m0s",
  fileCheckFrequency: "20s",
  httpCheckFrequency: "20s",
  address: "0.0.0.0",
  port: 10_250,
  authentication: { anonymous: { enabled: false }, webhook: { enabled: true, cacheTTL: "2m0s" } },
  authorization: { mode: "Webhook", webhook: { cacheAuthorizedTTL: "5m0s", cacheUnauthorizedTTL: "30s" } },
  registryPullQPS: 5,
  registryBurst: 10,
  eventRecordQPS: 5,
  eventBurst: 10,
  enableDebuggingHandlers: true,
  enableSystemLogHandler: true,
  healthzPort: 10_248,
  healthzBindAddress: "127.0.0.1",
  oomScoreAdj: -999,
  nodeStatusReportFrequency: "5m0s",
  nodeStatusUpdateFrequency: "10s",
  nodeLeaseDurationSeconds: 40,
  imageMinimumGCAge: "2m0s",
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  volumeStatsAggPeriod: "1m0s",
  cgroupsPerQOS: true,
  cgroupDriver: "cgroupfs",
  cpuManagerPolicy: "none",
  cpuManagerReconcilePeriod: "10s",
  memoryManagerPolicy: "None",
  topologyManagerPolicy: "none",
  topologyManagerScope: "container",
  runtimeRequestTimeout: "2m0s",
  hairpinMode: "promiscuous-bridge",
  maxPods: 110,
  podPidsLimit: -1,
  resolvConf: "/etc/resolv.conf",
  cpuCFSQuota: true,
  cpuCFSQuotaPeriod: "100ms",
  nodeStatusMaxImages: 50,
  maxOpenFiles: 1_000_000,
  contentType: "application/vnd.kubernetes.protobuf",
  kubeAPIQPS: 5,
  kubeAPIBurst: 10,
  serializeImagePulls: true,
  evictionHard: { "memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%" },
  evictionPressureTransitionPeriod: "5m0s",
  enableControllerAttachDetach: true,
  makeIPTablesUtilChains: true,
  iptablesMasqueradeBit: 14,
  iptablesDropBit: 15,
  failSwapOn: true,
  containerLogMaxSize: "10Mi",
  containerLogMaxFiles: 5,
  enforceNodeAllocatable: ["pods"],
  volumePluginDir: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
  registerNode: true,
  memoryThrottlingFactor: 0.8,
  shutdownGracePeriod: "0s",
  shutdownGracePeriodCriticalPods: "0s",
  streamingConnectionIdleTimeout: "4h0m0s",
};

test("an empty file has the defaults of KubeletConfiguration", (t) => {
  assert.partialDeepStrictEqual(effectiveConfiguration(configured(t, {})), defaults);
});

test("durations and numbers for which zero means the default have it when a file has zero", (t) => {
  const durations = [
    ...["syncFrequency", "fileCheckFrequency", "httpCheckFrequency", "nodeStatusReportFrequency", "nodeStatusUpdateFrequency"],
    ...["imageMinimumGCAge", "volumeStatsAggPeriod", "cpuManagerReconcilePeriod", "runtimeRequestTimeout", "cpuCFSQuotaPeriod"],
    "evictionPressureTransitionPeriod",
  ];
  const numbers = [
    "registryBurst",
    "eventBurst",
    "nodeLeaseDurationSeconds",
    "maxPods",
    "maxOpenFiles",
    "kubeAPIQPS",
    "kubeAPIBurst",
  ];
  const zero = Object.fromEntries([...durations.map((name) => [name, "0s"]), ...numbers.map((name) => [name, 0])]);
  const webhook = {
    authentication: { webhook: { cacheTTL: "0s" } },
    authorization: { webhook: { cacheAuthorizedTTL: "0s", cacheUnauthorizedTTL: "0s" } },
  };
  assert.partialDeepStrictEqual(effectiveConfiguration(configured(t, { ...zero, ...webhook })), defaults);
});

test("flags that no file sets have their defaults", () => {
  assert.partialDeepStrictEqual(configure(), {
    rootDir: "/var/lib/kubelet",
    certDir: "/var/lib/kubelet/pki",
    sandboxImage: "k8s.gcr.io/pause:3.6",
    runtimeEndpoint: "unix:///var/run/dockershim.sock",
    imageEndpoint: "",
    maxDeadPerContainer: 1,
    maxDead: -1,
    deadMinAgeMs: 0,
    registerSchedulable: true,
    keepTerminatedPodVolumes: false,
    readOnlyPort: 10_255,
    seccompDefault: false,
    protectKernelDefaults: false,
    rotateCertificates: false,
    rotateServerCertificates: false,
    podsPerCore: 0,
    evictionMaxPodGraceSeconds: 0,
    exitOnLockContention: false,
  });
});

/** Value of a field of the file, and the flag that sets it, if there is one. */
const settings: readonly (readonly [field: string, value: unknown, flag?: string])[] = [
  ["rotateCertificates", true, "--rotate-certificates"],
  ["contentType", "application/json", "--kube-api-content-type=application/json"],
  ["eventBurst", 11, "--event-burst=11"],
  ["eventRecordQPS", 12, "--event-qps=12"],
  ["kubeAPIBurst", 13, "--kube-api-burst=13"],
  ["kubeAPIQPS", 14, "--kube-api-qps=14"],
  ["evictionHard", { "memory.available": "1Mi" }, "--eviction-hard=memory.available<1Mi"],
  ["evictionSoft", { "memory.available": "2Mi" }, "--eviction-soft=memory.available<2Mi"],
  ["evictionSoftGracePeriod", { "memory.available": "1m30s" }, "--eviction-soft-grace-period=memory.available=1m30s"],
  ["evictionMinimumReclaim", { "memory.available": "3Mi" }, "--eviction-minimum-reclaim=memory.available=3Mi"],
  ["evictionMaxPodGracePeriod", 15, "--eviction-max-pod-grace-period=15"],
  ["evictionPressureTransitionPeriod", "16s", "--eviction-pressure-transition-period=16s"],
  ["hairpinMode", "none", "--hairpin-mode=none"],
  ["makeIPTablesUtilChains", false, "--make-iptables-util-chains=false"],
  ["iptablesDropBit", 17, "--iptables-drop-bit=17"],
  ["iptablesMasqueradeBit", 18, "--iptables-masquerade-bit=18"],
  ["protectKernelDefaults", true, "--protect-kernel-defaults"],
  ["oomScoreAdj", 19, "--oom-score-adj=19"],
  ["failSwapOn", false, "--fail-swap-on=false"],
  ["enableControllerAttachDetach", false, "--enable-controller-attach-detach=false"],
  ["volumeStatsAggPeriod", "20s", "--volume-stats-agg-period=20s"],
  ["volumePluginDir", "/volumes", "--volume-plugin-dir=/volumes"],
  ["registerNode", false, "--register-node=false"],
  ["providerID", "a://b", "--provider-id=a://b"],
  ["nodeStatusUpdateFrequency", "21s", "--node-status-update-frequency=21s"],
  ["nodeStatusReportFrequency", "22s"],
  ["nodeLeaseDurationSeconds", 23],
  ["nodeStatusMaxImages", 24, "--node-status-max-images=24"],
  ["shutdownGracePeriod", "25s"],
  ["shutdownGracePeriodCriticalPods", "5s"],
  ["maxPods", 26, "--max-pods=26"],
  ["podsPerCore", 27, "--pods-per-core=27"],
  ["podPidsLimit", 28, "--pod-max-pids=28"],
  ["podCIDR", "10.0.0.0/24", "--pod-cidr=10.0.0.0/24"],
  ["staticPodPath", "/manifests", "--pod-manifest-path=/manifests"],
  ["staticPodURL", "http://pods", "--manifest-url=http://pods"],
  ["staticPodURLHeader", { a: ["b"] }, "--manifest-url-header=a:b"],
  ["fileCheckFrequency", "29s", "--file-check-frequency=29s"],
  ["httpCheckFrequency", "30s", "--http-check-frequency=30s"],
  ["syncFrequency", "31s", "--sync-frequency=31s"],
  ["allowedUnsafeSysctls", ["kernel.*"], "--allowed-unsafe-sysctls=kernel.*"],
  ["seccompDefault", true, "--seccomp-default"],
  ["clusterDNS", ["10.0.0.10"], "--cluster-dns=10.0.0.10"],
  ["clusterDomain", "k", "--cluster-domain=k"],
  ["resolvConf", "/r", "--resolv-conf=/r"],
  ["runOnce", true, "--runonce"],
  ["maxOpenFiles", 32, "--max-open-files=32"],
  ["kubeletCgroups", "/kubelet", "--kubelet-cgroups=/kubelet"],
  ["cgroupDriver", "systemd", "--cgroup-driver=systemd"],
  ["cgroupRoot", "/root", "--cgroup-root=/root"],
  ["systemCgroups", "/system", "--system-cgroups=/system"],
  ["cpuCFSQuota", false, "--cpu-cfs-quota=false"],
  ["kubeReserved", { cpu: "33m" }, "--kube-reserved=cpu=33m"],
  ["systemReserved", { cpu: "34m" }, "--system-reserved=cpu=34m"],
  ["kubeReservedCgroup", "/kube.slice", "--kube-reserved-cgroup=/kube.slice"],
  ["systemReservedCgroup", "/system.slice", "--system-reserved-cgroup=/system.slice"],
  ["qosReserved", { memory: "50%" }, "--qos-reserved=memory=50%"],
  ["enforceNodeAllocatable", ["pods", "kube-reserved"], "--enforce-node-allocatable=pods,kube-reserved"],
  ["cpuManagerPolicy", "static", "--cpu-manager-policy=static"],
  ["cpuManagerPolicyOptions", { "full-pcpus-only": "true" }, "--cpu-manager-policy-options=full-pcpus-only=true"],
  ["cpuManagerReconcilePeriod", "35s", "--cpu-manager-reconcile-period=35s"],
  ["memoryManagerPolicy", "Static", "--memory-manager-policy=Static"],
  ["topologyManagerPolicy", "restricted", "--topology-manager-policy=restricted"],
  ["topologyManagerScope", "pod", "--topology-manager-scope=pod"],
  ["memoryThrottlingFactor", 0.5],
  ["runtimeRequestTimeout", "36s", "--runtime-request-timeout=36s"],
  ["serializeImagePulls", false, "--serialize-image-pulls=false"],
  ["registryBurst", 37, "--registry-burst=37"],
  ["registryPullQPS", 38, "--registry-qps=38"],
  ["imageMinimumGCAge", "39s", "--minimum-image-ttl-duration=39s"],
  ["imageGCHighThresholdPercent", 41, "--image-gc-high-threshold=41"],
  ["imageGCLowThresholdPercent", 40, "--image-gc-low-threshold=40"],
  ["containerLogMaxSize", "42Mi", "--container-log-max-size=42Mi"],
  ["containerLogMaxFiles", 43, "--container-log-max-files=43"],
  ["enableServer", false, "--enable-server=false"],
  ["address", "192.0.2.1", "--address=192.0.2.1"],
  ["port", 44, "--port=44"],
  ["tlsCertFile", "/cert", "--tls-cert-file=/cert"],
  ["tlsPrivateKeyFile", "/key", "--tls-private-key-file=/key"],
  ["tlsCipherSuites", ["TLS_A"], "--tls-cipher-suites=TLS_A"],
  ["tlsMinVersion", "VersionTLS13", "--tls-min-version=VersionTLS13"],
  ["serverTLSBootstrap", true, "--rotate-server-certificates"],
  ["authentication.webhook.cacheTTL", "45s", "--authentication-token-webhook-cache-ttl=45s"],
  ["authentication.x509.clientCAFile", "/ca", "--client-ca-file=/ca"],
  ["authorization.webhook.cacheAuthorizedTTL", "46s", "--authorization-webhook-cache-authorized-ttl=46s"],
  ["authorization.webhook.cacheUnauthorizedTTL", "47s", "--authorization-webhook-cache-unauthorized-ttl=47s"],
  ["enableDebuggingHandlers", false, "--enable-debugging-handlers=false"],
  ["enableSystemLogHandler", false],
  ["healthzBindAddress", "192.0.2.2", "--healthz-bind-address=192.0.2.2"],
  ["healthzPort", 48, "--healthz-port=48"],
  ["readOnlyPort", 49, "--read-only-port=49"],
];

/** `{ "a.b": 1 }` as `{ a: { b: 1 } }`. */
function nested(fields: readonly (readonly [field: string, value: unknown, flag?: string])[]): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const [field, value] of fields) {
    const parts = field.split(".");
    let at = all;
    for (const part of parts.slice(0, -1)) {
      const inner = { ...(at[part] as object | undefined) };
      at[part] = inner;
      at = inner;
    }
    at[parts.at(-1) ?? ""] = value;
  }
  return all;
}

test("each field of a file is in effect", (t) => {
  const shown = effectiveConfiguration(configured(t, nested(settings)));
  for (const [field, value] of settings) assert.deepEqual(fieldAt(shown, field), value, field);
});

test("each flag sets its field, without a file and over one", (t) => {
  const flags = settings.flatMap(([, , flag]) => flag ?? []);
  for (const config of [configure(...flags), configured(t, {}, ...flags)]) {
    const shown = effectiveConfiguration(config);
    for (const [field, value, flag] of settings) if (flag !== undefined) assert.deepEqual(fieldAt(shown, field), value, flag);
  }
});

test("a file's own list is shown parsed, and so are fields without an effect", (t) => {
  const fields = {
    registerWithTaints: [{ key: "a", value: "b", effect: "NoSchedule" }],
    reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }],
    logging: { format: "json" },
    showHiddenMetricsForVersion: "1.22",
    reservedSystemCPUs: "0",
    shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 10 }],
    memorySwap: { swapBehavior: "LimitedSwap" },
    featureGates: { GracefulNodeShutdownBasedOnPodPriority: true, NodeSwap: true },
    cgroupsPerQOS: false,
    enforceNodeAllocatable: ["none"],
  };
  const { cgroupsPerQOS: _, ...shown } = fields;
  assert.partialDeepStrictEqual(effectiveConfiguration(configured(t, fields)), shown);
});

test("a flag's taints replace the file's, and the former name of --bootstrap-kubeconfig is known", (t) => {
  const file = { registerWithTaints: [{ key: "a", effect: "NoSchedule" }] };
  const { registerWithTaints } = configured(t, file, "--register-with-taints=b=c:NoExecute");
  assert.deepEqual(registerWithTaints, [{ key: "b", value: "c", effect: "NoExecute" }]);
  assert.equal(configure("--experimental-bootstrap-kubeconfig=/old").bootstrapKubeconfig, "/old");
  const both = configure("--experimental-bootstrap-kubeconfig=/old", "--bootstrap-kubeconfig=/new");
  assert.equal(both.bootstrapKubeconfig, "/new");
});

test("with the gate NodeSwap a configuration need not name a behaviour", () => {
  assert.equal(configure("--feature-gates=NodeSwap=true").swapBehavior, "");
});
