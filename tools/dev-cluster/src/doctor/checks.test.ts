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
