import assert from "node:assert/strict";
import { test } from "node:test";
import { checks, findingsOf } from "./checks.ts";
import { findingsText } from "./doctor.ts";
import { type DoctorFacts, samplesOf } from "./facts.ts";

const now = Date.parse("2026-03-01T12:00:00Z");
const day = 24 * 3600_000;
const lease = (name: string, renewTime: string, namespace = "kube-system") => ({
  metadata: { name, namespace },
  spec: { holderIdentity: "x", leaseDurationSeconds: 15, renewTime },
});
const justNow = "2026-03-01T11:59:58.000000Z";
const node = (name: string, status: object = {}, spec: object = {}) => ({
  metadata: { name },
  spec,
  status: { conditions: [{ type: "Ready", status: "True" }], nodeInfo: { kubeletVersion: "v1.23.0" }, ...status },
});

/** Of a cluster in which nothing is wrong. */
const well = {
  now,
  certificates: [{ file: "/pki/ca.crt", subject: "CN=ca", begins: now - day, ends: now + 365 * day }],
  disks: [{ path: "/data", freeBytes: 50 * 1024 ** 3, totalBytes: 100 * 1024 ** 3 }],
  unready: [],
  clockMs: 100,
  serverVersion: "v1.23.0",
  metrics: samplesOf(
    'etcd_db_total_size_in_bytes{endpoint="http://127.0.0.1:2379"} 4.5e+06\ncoxswain_apiserver_cache_limit_bytes 1e9\n',
  ),
  nodes: [node("n1")],
  leases: [lease("kube-scheduler", justNow), lease("kube-controller-manager", justNow), lease("n1", justNow, "kube-node-lease")],
  apiServices: [{ metadata: { name: "v1." }, status: { conditions: [{ type: "Available", status: "True" }] } }],
  webhooks: [],
  services: [],
  quotas: [],
  failedPods: [],
  namespaces: [{ metadata: { name: "default" } }],
  signingRequests: [],
  deprecated: [],
  unread: [],
} as unknown as DoctorFacts;

const webhook = (more: object): object => ({
  metadata: { name: "hooks" },
  webhooks: [{ name: "w.example.com", clientConfig: { url: "https://x" }, rules: [], failurePolicy: "Fail", ...more }],
});
const everything = [{ apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"] }];
const metric = (line: string): object => ({ metrics: samplesOf(line) });

test("a cluster in which nothing is wrong has no findings", () => {
  assert.deepEqual(findingsOf(well), []);
  assert.equal(findingsText([]), `Nothing is wrong: ${Object.keys(checks).length} checks, no findings.\n`);
});

const findings = [
  {
    name: "an API server that does not answer",
    facts: { unreachable: "connect ECONNREFUSED" },
    severity: "critical",
    check: "server",
    says: /ECONNREFUSED/,
  },
  {
    name: "a failing check of /readyz",
    facts: { unready: ["etcd: failed: reason withheld"] },
    severity: "critical",
    check: "server",
    says: /etcd: failed/,
  },
  {
    name: "an expired certificate",
    facts: { certificates: [{ file: "/pki/a.crt", subject: "CN=a", begins: 0, ends: now - day }] },
    severity: "critical",
    check: "certificates",
    says: /a\.crt \(CN=a\) expired 24h ago/,
  },
  {
    name: "a certificate that ends soon",
    facts: { certificates: [{ file: "/pki/a.crt", subject: "CN=a", begins: 0, ends: now + 3 * day }] },
    severity: "warning",
    check: "certificates",
    says: /expires in 3d/,
  },
  {
    name: "a full disk",
    facts: { disks: [{ path: "/data", freeBytes: 100 * 1024 ** 2, totalBytes: 100 * 1024 ** 3 }] },
    severity: "critical",
    check: "disks",
    says: /100 MiB of 102400 MiB left/,
  },
  { name: "a clock", facts: { clockMs: 9_000 }, severity: "warning", check: "clocks", says: /9s ahead of this machine's/ },
  {
    name: "the clock of a node",
    facts: { leases: [...well.leases.slice(0, 2), lease("n1", "2026-03-01T12:05:00.000000Z", "kube-node-lease")] },
    severity: "warning",
    check: "clocks",
    says: /node n1 is \d+[ms\d]* ahead/,
  },
  {
    name: "etcd's size",
    facts: metric("etcd_db_total_size_in_bytes 2.1e9"),
    severity: "critical",
    check: "etcd",
    says: /2003 MiB/,
  },
  {
    name: "no scheduler",
    facts: { leases: well.leases.slice(1) },
    severity: "critical",
    check: "leaders",
    says: /no kube-scheduler leads/,
  },
  {
    name: "a node that is not ready",
    facts: { nodes: [node("n1", { conditions: [] })] },
    severity: "critical",
    check: "nodes",
    says: /no kubelet has reported/,
  },
  {
    name: "a cordoned node",
    facts: { nodes: [node("n1", {}, { unschedulable: true })] },
    severity: "notice",
    check: "nodes",
    says: /cordoned/,
  },
  {
    name: "an API service",
    facts: {
      apiServices: [
        { metadata: { name: "v1.x" }, status: { conditions: [{ type: "Available", status: "False", message: "gone" }] } },
      ],
    },
    severity: "critical",
    check: "api-services",
    says: /v1\.x is unavailable: gone/,
  },
  {
    name: "a webhook that matches everything",
    facts: { webhooks: [webhook({ rules: everything })] },
    severity: "warning",
    check: "webhooks",
    says: /matches every resource/,
  },
  {
    name: "a webhook without its service",
    facts: { webhooks: [webhook({ clientConfig: { service: { namespace: "a", name: "b" } } })] },
    severity: "critical",
    check: "webhooks",
    says: /its service a\/b does not exist; what it matches is refused/,
  },
  {
    name: "a slow webhook",
    facts: { webhooks: [webhook({ timeoutSeconds: 30 })] },
    severity: "notice",
    check: "webhooks",
    says: /by up to 30 s/,
  },
  {
    name: "a webhook that could not be called",
    facts: metric('apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="w.example.com"} 3'),
    severity: "warning",
    check: "webhooks",
    says: /w\.example\.com could not be called 3 times/,
  },
  {
    name: "refused requests",
    facts: metric('apiserver_flowcontrol_rejected_requests_total{flow_schema="global-default",reason="queue-full"} 7'),
    severity: "warning",
    check: "overload",
    says: /^7 requests .*global-default \(queue-full\)/,
  },
  {
    name: "a kubelet that is too old",
    facts: { nodes: [node("n1", { nodeInfo: { kubeletVersion: "v1.20.4" } })] },
    severity: "warning",
    check: "versions",
    says: /3 minor versions older/,
  },
  {
    name: "a quota",
    facts: { quotas: [{ metadata: { namespace: "a", name: "q" }, status: { hard: { pods: "10" }, used: { pods: "9" } } }] },
    severity: "notice",
    check: "quotas",
    says: /a\/q is nearly used up: pods 9 of 10/,
  },
  {
    name: "evicted pods",
    facts: { failedPods: [{ metadata: { namespace: "a", name: "p" }, status: { reason: "Evicted", message: "low on memory" } }] },
    severity: "warning",
    check: "evictions",
    says: /1 pod was evicted, such as a\/p: low on memory/,
  },
  {
    name: "a namespace in deletion",
    facts: { namespaces: [{ metadata: { name: "old", deletionTimestamp: "2026-03-01T11:00:00Z" } }] },
    severity: "warning",
    check: "namespaces",
    says: /old has been in deletion for 60m/,
  },
  {
    name: "deprecated APIs",
    facts: { deprecated: [{ version: "policy/v1beta1", resource: "poddisruptionbudgets", removedIn: "1.25", users: ["helm"] }] },
    severity: "notice",
    check: "deprecated-apis",
    says: /poddisruptionbudgets of policy\/v1beta1, which release 1\.25 does not serve, are written by helm/,
  },
  {
    name: "full caches",
    facts: metric(
      'coxswain_apiserver_cache_limit_bytes 1000\ncoxswain_apiserver_cache_bytes{use="a"} 600\ncoxswain_apiserver_cache_bytes{use="b"} 390',
    ),
    severity: "notice",
    check: "caches",
    says: /caches are full/,
  },
  {
    name: "signing requests",
    facts: { signingRequests: [{ metadata: { name: "r", creationTimestamp: "2026-03-01T11:00:00Z" } }] },
    severity: "notice",
    check: "signing-requests",
    says: /^1 certificate signing requests wait for approval: r$/,
  },
  {
    name: "resources that may not be read",
    facts: { unread: ["secrets: forbidden"] },
    severity: "notice",
    check: "rights",
    says: /secrets: forbidden/,
  },
];

for (const { name, facts, severity, check, says } of findings) {
  test(`the doctor finds ${name}`, () => {
    const found = findingsOf({ ...well, ...(facts as Partial<DoctorFacts>) });
    assert.deepEqual(
      found.map((one) => [one.severity, one.check]),
      [[severity, check]],
    );
    assert.match(found[0]?.summary ?? "", says);
    assert.notEqual(found[0]?.remedy, "");
  });
}

const pressure = (status: string) => ({
  conditions: [
    { type: "Ready", status: "True" },
    { type: "DiskPressure", status, message: "low on disk" },
  ],
});
const backed = webhook({ clientConfig: { service: { namespace: "a", name: "b" } } });

test("the doctor finds lesser problems", () => {
  for (const [facts, severity, says] of [
    [{ nodes: [node("n1", pressure("True"))] }, "warning", /n1: DiskPressure \(low on disk\)/],
    [{ disks: [{ path: "/data", freeBytes: 5 * 1024 ** 3, totalBytes: 100 * 1024 ** 3 }] }, "warning", /left/],
    [metric("etcd_db_total_size_in_bytes 1.7e9"), "warning", /1621 MiB/],
    [
      { certificates: [{ file: "/a.crt", subject: "CN=a", begins: now + day, ends: now + 90 * day }] },
      "critical",
      /not valid yet; it becomes valid in 24h/,
    ],
    [
      { webhooks: [webhook({ clientConfig: { service: { namespace: "a", name: "b" } }, failurePolicy: "Ignore" })] },
      "warning",
      /does not exist$/,
    ],
    [metric('apiserver_admission_webhook_fail_open_count{name="w"} 1'), "warning", /could not be called 1 times/],
    [{ nodes: [node("n1", { nodeInfo: { kubeletVersion: "v1.24.1" } })] }, "warning", /newer than/],
    [
      { leases: [lease("kube-scheduler", "2026-03-01T11:58:00.000000Z"), ...well.leases.slice(1)] },
      "critical",
      /no kube-scheduler leads since/,
    ],
  ] as const) {
    const found = findingsOf({ ...well, ...(facts as Partial<DoctorFacts>) });
    assert.deepEqual(
      found.map((one) => one.severity),
      [severity],
      String(says),
    );
    assert.match(found[0]?.summary ?? "", says);
  }
});

/** By check: facts just short of a finding. */
const harmless: Readonly<Record<string, readonly object[]>> = {
  server: [{ unready: [] }],
  etcd: [metric("etcd_db_total_size_in_bytes 1.5e9")],
  certificates: [{ certificates: [{ file: "/a.crt", subject: "CN=a", begins: now - 1, ends: now + 31 * day }] }],
  disks: [{ disks: [{ path: "/data", freeBytes: 11 * 1024 ** 3, totalBytes: 100 * 1024 ** 3 }] }],
  clocks: [
    { clockMs: -4_900 },
    // The lease of a node that was deleted.
    { leases: [...well.leases, lease("gone", "2026-03-01T12:05:00.000000Z", "kube-node-lease")] },
  ],
  leaders: [{ leases: [lease("kube-scheduler", "2026-03-01T11:59:35.000000Z"), ...well.leases.slice(1)] }],
  nodes: [{ nodes: [node("n1", pressure("False"))] }, { nodes: [] }],
  "api-services": [{ apiServices: [{ metadata: { name: "v1.x" }, status: {} }] }],
  webhooks: [
    { webhooks: [webhook({ rules: everything, failurePolicy: "Ignore" })] },
    { webhooks: [webhook({ rules: everything, namespaceSelector: { matchLabels: { a: "b" } } })] },
    { webhooks: [webhook({ timeoutSeconds: 15 })] },
    { webhooks: [backed], services: [{ metadata: { namespace: "a", name: "b" } }] },
    metric('apiserver_admission_webhook_rejection_count{error_type="no_error",name="w"} 3'),
  ],
  overload: [metric('apiserver_flowcontrol_rejected_requests_total{flow_schema="x",reason="queue-full"} 0')],
  evictions: [{ failedPods: [{ metadata: { namespace: "a", name: "p" }, status: { reason: "Error" } }] }],
  namespaces: [{ namespaces: [{ metadata: { name: "old", deletionTimestamp: "2026-03-01T11:55:00Z" } }] }],
  versions: [
    { nodes: [node("n1", { nodeInfo: { kubeletVersion: "v1.21.4" } })] },
    { nodes: [node("n1", { nodeInfo: { kubeletVersion: "" } })] },
  ],
  caches: [metric("coxswain_apiserver_cache_limit_bytes 1000\ncoxswain_apiserver_cache_bytes 900"), metric("x 1")],
  quotas: [
    {
      quotas: [
        { metadata: { namespace: "a", name: "q" }, status: { hard: { pods: "10", cpu: "0" }, used: { pods: "8", cpu: "0" } } },
        { metadata: { namespace: "a", name: "new" } },
      ],
    },
  ],
  "deprecated-apis": [{ deprecated: [] }],
  "signing-requests": [
    {
      signingRequests: [
        { metadata: { name: "new", creationTimestamp: "2026-03-01T11:58:00Z" } },
        { metadata: { name: "old", creationTimestamp: "2026-03-01T10:00:00Z" }, status: { conditions: [{ type: "Approved" }] } },
      ],
    },
  ],
  rights: [{ unread: [] }],
};

test("each check has a case with a finding and a near miss without one", () => {
  const names = Object.keys(checks).toSorted();
  assert.deepEqual([...new Set(findings.map(({ check }) => check))].toSorted(), names);
  assert.deepEqual(Object.keys(harmless).toSorted(), names);
  for (const [check, all] of Object.entries(harmless)) {
    for (const facts of all) assert.deepEqual(findingsOf({ ...well, ...facts }), [], `${check}: ${JSON.stringify(facts)}`);
  }
});

test("leases that may not be read are not reported as missing leaders", () => {
  const found = findingsOf({ ...well, leases: [], unread: ["leases: forbidden"] });
  assert.deepEqual(
    found.map(({ check }) => check),
    ["rights"],
  );
});

test("services that may not be read are not reported as missing services of webhooks", () => {
  const found = findingsOf({ ...well, webhooks: [backed] as never, unread: ["services: forbidden"] });
  assert.deepEqual(
    found.map(({ check }) => check),
    ["rights"],
  );
});

test("requests of controllers for a deprecated version without a newer one are no finding", () => {
  const requested = {
    version: "policy/v1beta1",
    resource: "podsecuritypolicies",
    removedIn: "1.25",
    users: [],
    isOnlyVersion: true,
  };
  assert.deepEqual(findingsOf({ ...well, deprecated: [requested] }), []);
  assert.equal(findingsOf({ ...well, deprecated: [{ ...requested, isOnlyVersion: false }] }).length, 1);
});

test("an API service that is briefly unavailable is no finding", () => {
  const conditions = [{ type: "Available", status: "False", message: "starting", lastTransitionTime: "2026-03-01T11:59:30Z" }];
  assert.deepEqual(findingsOf({ ...well, apiServices: [{ metadata: { name: "v1.x" }, status: { conditions } }] as never }), []);
});

test("the most severe finding comes first", () => {
  const worst = findingsOf({
    ...well,
    unready: ["etcd: failed"],
    nodes: [node("n1", {}, { unschedulable: true })] as never,
    clockMs: 9_000,
  });
  assert.deepEqual(
    worst.map(({ severity }) => severity),
    ["critical", "warning", "notice"],
  );
  assert.match(
    findingsText(worst),
    /^CRITICAL {2}server: .*\n {10}\S.*\nWARNING {3}clocks: [\s\S]*\n3 findings: 1 critical, 1 warning, 1 notice\n$/,
  );
});

const said = (facts: object): string[] =>
  findingsOf({ ...well, clockMs: 0, ...facts } as DoctorFacts).map(
    ({ severity, check, summary }) => `${severity} ${check}: ${summary}`,
  );

const gib = 1024 ** 3;
const disk = (freeBytes: number, totalBytes: number): object => ({ disks: [{ path: "/d", freeBytes, totalBytes }] });
const certificate = (begins: number, ends: number): object => ({
  certificates: [...well.certificates, { file: "/a.crt", subject: "CN=a", begins: now + begins, ends: now + ends }],
});
const time = (ms: number): string => new Date(now + ms).toISOString();
const heldLease = (name: string, renewedMs: number, spec: object = {}, namespace = "kube-system") => {
  const held = lease(name, time(renewedMs), namespace);
  return { ...held, spec: { ...held.spec, ...spec } };
};
const withScheduler = (...args: [number, object?, string?]): object => ({
  leases: [...well.leases.slice(1), heldLease("kube-scheduler", ...args)],
});
const nodeLease = (renewedMs: number, namespace = "kube-node-lease"): object => ({
  leases: [...well.leases, heldLease("n1", renewedMs, {}, namespace)],
});
const withNode = (status: object, spec: object = {}): object => ({ nodes: [node("n0"), node("n1", status, spec)] });
const withApiService = (status: string, changedMs: number, more: object = {}): object => ({
  apiServices: [
    ...well.apiServices,
    {
      metadata: { name: "v1.x" },
      status: {
        conditions: [
          { type: "Other", status: "False" },
          { type: "Available", status, lastTransitionTime: time(changedMs), ...more },
        ],
      },
    },
  ],
});
const quota = (hard: object, used: object | undefined): object => ({
  quotas: [{ metadata: { namespace: "a", name: "q" }, status: { hard, ...(used !== undefined && { used }) } }],
});
const request = (name: string, ageMs: number) => ({ metadata: { name, creationTimestamp: time(-ageMs) } });
const evicted = (name: string, more: object = {}) => ({
  metadata: { namespace: "a", name },
  status: { reason: "Evicted", ...more },
});
const rules = (...more: object[]): object[] => [{ apiGroups: ["apps"], resources: ["*"] }, ...more];
const all = { apiGroups: ["", "*"], resources: ["pods", "*"] };
const matchesAll =
  "warning webhooks: webhook w.example.com of hooks matches every resource in every namespace and refuses all writes when it fails";
const etcdFull = (severity: string, size: number): string =>
  `${severity} etcd: etcd's database https://b has ${size} MiB; by default it refuses writes above 2048 MiB`;
const etcdSizes = (bytes: number): object =>
  metric(
    `etcd_db_total_size_in_bytes{endpoint="https://a"} 5\netcd_db_total_size_in_bytes{endpoint="https://b"} ${bytes}\nother 9e9`,
  );

// At each limit and just beyond it, with the whole text.
const limits: readonly (readonly [string, object, readonly string[]])[] = [
  ["ends now", certificate(-day, 0), ["critical certificates: /a.crt (CN=a) expired 0s ago"]],
  ["begins now", certificate(0, 31 * day), []],
  ["begins later", certificate(1_000, day), ["critical certificates: /a.crt (CN=a) is not valid yet; it becomes valid in 1s"]],
  ["ends in 30 days", certificate(-day, 30 * day), ["warning certificates: /a.crt (CN=a) expires in 30d"]],
  ["ends after 30 days", certificate(-day, 30 * day + 1), []],
  ["a tenth", disk(5 * gib, 50 * gib), ["warning disks: the disk of /d has 5120 MiB of 51200 MiB left"]],
  ["more than a tenth", disk(5 * gib + 1, 50 * gib), []],
  ["1 GiB", disk(gib, 2 * gib), ["warning disks: the disk of /d has 1024 MiB of 2048 MiB left"]],
  ["more than 1 GiB", disk(gib + 1, 2 * gib), []],
  ["3 %", disk(30 * gib, 1000 * gib), ["warning disks: the disk of /d has 30720 MiB of 1024000 MiB left"]],
  ["less than 3 %", disk(29 * gib, 1000 * gib), ["critical disks: the disk of /d has 29696 MiB of 1024000 MiB left"]],
  ["256 MiB", disk(gib / 4, gib), ["warning disks: the disk of /d has 256 MiB of 1024 MiB left"]],
  ["less than 256 MiB", disk(gib / 4 - 1, gib), ["critical disks: the disk of /d has 256 MiB of 1024 MiB left"]],
  [
    "each line of /readyz",
    { unready: ["etcd: failed", "ping: not ok", "informer-sync: failed"] },
    [
      "critical server: the API server is not ready: etcd: failed",
      "critical server: the API server is not ready: informer-sync: failed",
      "warning server: the API server is not ready: ping: not ok",
    ],
  ],
  [
    "no server",
    { unreachable: "refused", leases: [], unready: ["etcd: failed"] },
    ["critical server: the API server does not answer: refused"],
  ],
  ["a clock 5 s off", { clockMs: 5_000 }, []],
  ["a clock ahead", { clockMs: 5_001 }, ["warning clocks: the API server's clock is 5s ahead of this machine's"]],
  ["a clock behind", { clockMs: -5_001 }, ["warning clocks: the API server's clock is 5s behind this machine's"]],
  ["a node's clock 10 s ahead", nodeLease(10_000), []],
  ["a node's clock", nodeLease(10_001), ["warning clocks: the clock of node n1 is 10s ahead"]],
  ["a node's clock, by the server's", { ...nodeLease(14_000), clockMs: 4_000 }, []],
  [
    "a node's clock, by a server's behind",
    { ...nodeLease(7_000), clockMs: -4_000 },
    ["warning clocks: the clock of node n1 is 11s ahead"],
  ],
  ["another lease with a node's name", nodeLease(60_000, "kube-system"), []],
  ["etcd below three quarters", etcdSizes(1.5 * gib - 1), []],
  ["etcd at three quarters", etcdSizes(1.5 * gib), [etcdFull("warning", 1536)]],
  ["etcd at 95 %", etcdSizes(0.95 * 2 * gib), [etcdFull("warning", 1946)]],
  ["etcd above 95 %", etcdSizes(0.95 * 2 * gib + 1), [etcdFull("critical", 1946)]],
  [
    "a node that is not ready",
    withNode(
      {
        conditions: [
          { type: "Ready", status: "Unknown", message: "no heartbeat" },
          { type: "DiskPressure", status: "True" },
        ],
      },
      { unschedulable: true },
    ),
    ["critical nodes: node n1 is not ready: no heartbeat"],
  ],
  [
    "a cordoned node under pressure",
    withNode(
      {
        conditions: [
          { type: "DiskPressure", status: "True", message: "low on disk" },
          { type: "Ready", status: "True" },
          { type: "PIDPressure", status: "Unknown" },
          { type: "MemoryPressure", status: "True" },
        ],
      },
      { unschedulable: true },
    ),
    [
      "warning nodes: node n1: DiskPressure (low on disk)",
      "warning nodes: node n1: MemoryPressure ()",
      "notice nodes: node n1 is cordoned",
    ],
  ],
  ["a lease just valid", withScheduler(-29_999), []],
  ["a lease of twice its duration", withScheduler(-30_000), [`critical leaders: no kube-scheduler leads since ${time(-30_000)}`]],
  ["a longer lease", withScheduler(-119_999, { leaseDurationSeconds: 60 }), []],
  ["a lease without a duration", withScheduler(-29_999, { leaseDurationSeconds: undefined }), []],
  [
    "a lease by the server's clock",
    { ...withScheduler(-26_000), clockMs: 4_000 },
    [`critical leaders: no kube-scheduler leads since ${time(-26_000)}`],
  ],
  [
    "a released lease",
    withScheduler(-1, { holderIdentity: "" }),
    [`critical leaders: no kube-scheduler leads since ${time(-1)}`],
  ],
  ["a lease of another namespace", withScheduler(-1, {}, "default"), ["critical leaders: no kube-scheduler leads"]],
  [
    "no leases",
    { leases: [] },
    ["critical leaders: no kube-controller-manager leads", "critical leaders: no kube-scheduler leads"],
  ],
  [
    "an API service after a minute",
    withApiService("False", -60_000, { reason: "MissingEndpoints" }),
    ["critical api-services: API service v1.x is unavailable: MissingEndpoints; namespaces cannot be deleted meanwhile"],
  ],
  ["an API service within a minute", withApiService("False", -59_999), []],
  ["an API service of unknown state", withApiService("Unknown", -day), []],
  ["an API service by the server's clock", { ...withApiService("False", -62_000), clockMs: -4_000 }, []],
  ["a rule for everything behind another", { webhooks: [webhook({ rules: rules(all) })] }, [matchesAll]],
  [
    "a rule for everything with subresources",
    { webhooks: [webhook({ rules: rules({ ...all, resources: ["*/*"] }), failurePolicy: undefined })] },
    [matchesAll],
  ],
  ["a rule for every group", { webhooks: [webhook({ rules: rules({ ...all, resources: ["pods", "pods/*"] }) })] }, []],
  ["a rule for some objects", { webhooks: [webhook({ rules: [all], objectSelector: { matchLabels: { a: "b" } } })] }, []],
  ["empty selectors", { webhooks: [webhook({ rules: [all], objectSelector: {}, namespaceSelector: {} })] }, [matchesAll]],
  [
    "16 s",
    { webhooks: [webhook({ timeoutSeconds: 16 })] },
    ["notice webhooks: webhook w.example.com of hooks may delay each write by up to 16 s"],
  ],
  ["16 s that are ignored", { webhooks: [webhook({ timeoutSeconds: 16, failurePolicy: "Ignore" })] }, []],
  [
    "services of the same name or namespace",
    {
      webhooks: [webhook({}), backed],
      services: [{ metadata: { namespace: "z", name: "b" } }, { metadata: { namespace: "a", name: "z" } }],
    },
    ["critical webhooks: webhook w.example.com of hooks: its service a/b does not exist; what it matches is refused"],
  ],
  [
    "calls that failed",
    metric(
      [
        'apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="w1"} 0',
        'apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="w2"} 2',
        'apiserver_admission_webhook_fail_open_count{name="w3"} 3',
      ].join("\n"),
    ),
    [
      "warning webhooks: webhook w2 could not be called 2 times since the API server started; these requests were refused",
      "warning webhooks: webhook w3 could not be called 3 times since the API server started",
    ],
  ],
  ["a kubelet two versions behind", withNode({ nodeInfo: { kubeletVersion: "v1.21.0" } }), []],
  [
    "a kubelet three versions behind",
    withNode({ nodeInfo: { kubeletVersion: "v1.20.9" } }),
    ["warning versions: the kubelet of n1 is v1.20.9, 3 minor versions older than the API server (v1.23.0)"],
  ],
  [
    "a newer kubelet",
    withNode({ nodeInfo: { kubeletVersion: "v1.24.0" } }),
    ["warning versions: the kubelet of n1 is v1.24.0, newer than the API server (v1.23.0)"],
  ],
  [
    "deprecated APIs",
    {
      deprecated: [
        { version: "a/v1", resource: "as", removedIn: "", users: [..."abcdef"], isOnlyVersion: true },
        { version: "b/v1", resource: "bs", removedIn: "1.26", users: [], isOnlyVersion: false },
      ],
    },
    [
      "notice deprecated-apis: as of a/v1, which release to come does not serve, are written by a, b, c, d, e",
      "notice deprecated-apis: bs of b/v1, which release 1.26 does not serve, were requested",
    ],
  ],
  [
    "caches at 95 %",
    metric(`coxswain_apiserver_cache_limit_bytes ${gib}\ncoxswain_apiserver_cache_bytes ${0.95 * gib}`),
    ["notice caches: the API server's caches are full: 973 MiB of 1024 MiB"],
  ],
  ["caches below 95 %", metric(`coxswain_apiserver_cache_limit_bytes 1000\ncoxswain_apiserver_cache_bytes 949`), []],
  [
    "refused requests of several flows",
    metric(
      ["a,1", "a,1", "b,0", "b,2", "c,1", "d,1", "e,1", "f,1"]
        .map((one) => one.split(","))
        .map(([flow, count]) => `apiserver_flowcontrol_rejected_requests_total{flow_schema="${flow}",reason="time-out"} ${count}`)
        .join("\n"),
    ),
    [
      "warning overload: 8 requests were refused with 429 since the API server started: a (time-out), b (time-out), c (time-out), d (time-out), e (time-out)",
    ],
  ],
  [
    "quotas at nine tenths",
    quota({ cpu: "1", memory: "100Mi", pods: "10" }, { cpu: "900m", memory: "80Mi", pods: "11" }),
    ["notice quotas: quota a/q is nearly used up: cpu 900m of 1, pods 11 of 10"],
  ],
  ["quotas below nine tenths", quota({ cpu: "1" }, { cpu: "899m" }), []],
  ["quotas that are not used", quota({ cpu: "1", x: "?" }, undefined), []],
  [
    "one eviction",
    { failedPods: [{ metadata: { name: "x" } }, evicted("p")] },
    ["warning evictions: 1 pod was evicted, such as a/p: "],
  ],
  [
    "evictions",
    { failedPods: [evicted("p", { message: "low" }), evicted("q")] },
    ["warning evictions: 2 pods were evicted, such as a/p: low"],
  ],
  [
    "a deletion of ten minutes",
    { namespaces: [{ metadata: { name: "x" } }, { metadata: { name: "old", deletionTimestamp: time(-600_000) } }] },
    ["warning namespaces: namespace old has been in deletion for 10m"],
  ],
  ["a deletion within ten minutes", { namespaces: [{ metadata: { name: "old", deletionTimestamp: time(-599_999) } }] }, []],
  ["signing requests of five minutes", { signingRequests: [request("a", 300_000)] }, []],
  [
    "older signing requests",
    {
      signingRequests: [
        request("new", 0),
        request("a", 301_000),
        request("b", 300_001),
        request("c", 301_000),
        request("d", 301_000),
      ],
    },
    ["notice signing-requests: 4 certificate signing requests wait for approval: a, b, c"],
  ],
  [
    "two rights",
    { unread: ["a: forbidden", "b: forbidden"] },
    ["notice rights: could not be checked: a: forbidden", "notice rights: could not be checked: b: forbidden"],
  ],
];

for (const [name, facts, want] of limits)
  test(`the doctor says about ${name}: ${want.length === 0 ? "nothing" : want.length}`, () =>
    assert.deepEqual(said(facts), want));

test("the remedy of a server that is not ready, and of the first of several requests, is the right one", () => {
  const remedies = (facts: object): string[] => findingsOf({ ...well, ...facts } as DoctorFacts).map(({ remedy }) => remedy);
  assert.deepEqual(remedies({ unready: ["etcd: failed", "ping: failed"] }), [
    "Look at etcd: its log, its disk, its members (etcdctl endpoint status), its alarms (etcdctl alarm list).",
    "Look at the log of kube-apiserver.",
  ]);
  assert.deepEqual(remedies({ signingRequests: [request("a", 1e9), request("b", 1e9)] }), [
    "kubectl certificate approve a, if you know who made it.",
  ]);
  assert.deepEqual(remedies(certificate(1_000, day)), ["Set this machine's clock."]);
  assert.deepEqual(remedies(withNode({ conditions: [] })), ["kubectl why node/n1"]);
  assert.deepEqual(remedies(withNode({}, { unschedulable: true })), ["kubectl uncordon n1, when its maintenance is over."]);
  assert.deepEqual(remedies(withApiService("False", -day)), ["kubectl why apiservice/v1.x"]);
  assert.deepEqual(remedies({ namespaces: [{ metadata: { name: "old", deletionTimestamp: time(-day) } }] }), [
    "kubectl why namespace/old",
  ]);
});

test("findings are counted by severity, and one is one", () => {
  const one = { severity: "warning", check: "clocks", summary: "a", remedy: "b" } as const;
  assert.equal(findingsText([one]), "WARNING   clocks: a\n          b\n1 finding: 1 warning\n");
  assert.match(findingsText([{ ...one, severity: "critical" }, one, one]), /\n3 findings: 1 critical, 2 warning\n$/);
});
