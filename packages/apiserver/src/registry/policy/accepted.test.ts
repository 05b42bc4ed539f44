/** What disruption budgets and pod security policies may say: values next to those that rules.test.ts of each kind sees refused. */
import { testAccepted } from "../../testing/accepted.ts";
import volumeTypes from "./podsecuritypolicies/volume-types.json" with { type: "json" };

const [budgets, policies] = ["poddisruptionbudgets.policy", "podsecuritypolicies.policy"] as const;
const condition = { type: "a.b/C", status: "True", lastTransitionTime: "2022-01-01T00:00:00Z", reason: "R" };
const conditions = (more: object) => ({ "status.conditions": [{ ...condition, ...more }] });
const range = { min: 0, max: 0 };
const appArmor = (list: string, value: string) => ({
  "metadata.annotations": { [`apparmor.security.beta.kubernetes.io/${list}`]: value },
});
const seccomp = (list: string, value: string) => ({
  "metadata.annotations": { [`seccomp.security.alpha.kubernetes.io/${list}`]: value },
});
const sysctls = (...list: string[]) => ({ "spec.allowedUnsafeSysctls": list });
const badSysctl = "must have at most 253 characters and match regex";
const classes = (allowedRuntimeClassNames: string[], defaultRuntimeClassName?: string) => ({
  "spec.runtimeClass": { allowedRuntimeClassNames, ...(defaultRuntimeClassName !== undefined && { defaultRuntimeClassName }) },
});

testAccepted([
  {
    resource: budgets,
    name: "numbers and shares of pods, one of the two",
    with: { "spec.minAvailable": undefined },
    taken: [
      ...[0, 2 ** 31 - 1, "0%", "100%"].flatMap((value) => [{ "spec.minAvailable": value }, { "spec.maxUnavailable": value }]),
      { "spec.selector": undefined },
      { "spec.selector": {} },
    ],
    refused: [
      [{ "spec.maxUnavailable": -1 }, "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
      [{ "spec.minAvailable": 0, "spec.maxUnavailable": 0 }, "spec: Invalid value: policy.PodDisruptionBudgetSpec{"],
    ],
  },
  {
    resource: budgets,
    name: "any other spec than before",
    before: {},
    taken: [{ "spec.minAvailable": undefined, "spec.maxUnavailable": 1 }, { "spec.selector": { matchLabels: { c: "d" } } }],
    refused: [[{ "spec.minAvailable": -1 }, "spec.minAvailable: Invalid value: -1: must be greater"]],
  },
  {
    resource: budgets,
    name: "conditions up to their limits",
    status: true,
    before: {},
    taken: [
      ...["True", "False", "Unknown"].map((status) => conditions({ status })),
      conditions({ reason: "R".repeat(1024), message: "m".repeat(32_768), observedGeneration: 0 }),
      ...["a", "A_", "a1", "A,B:c_9"].map((reason) => conditions({ reason })),
      { "status.conditions": [condition, { ...condition, type: "b" }] },
    ],
    refused: [
      ...["1a", "_a", "a,", "a:", "a b"].map(
        (reason) => [conditions({ reason }), "status.conditions[0].reason: Invalid value"] as const,
      ),
      [conditions({ reason: "R".repeat(1025) }), "status.conditions[0].reason: Too long: must have at most 1024 bytes"],
      [conditions({ message: "m".repeat(32_769) }), "status.conditions[0].message: Too long: must have at most 32768 bytes"],
      [
        { "status.conditions": [condition, { ...condition, type: "b" }, condition] },
        'status.conditions[2].type: Duplicate value: "a.b/C"',
      ],
    ],
  },
  {
    resource: budgets,
    name: "counts of nothing, and in v1beta1 of less",
    status: true,
    before: {},
    taken: [{ status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 } }],
  },
  {
    resource: budgets,
    requestVersion: "v1beta1",
    name: "in v1beta1 counts of less than nothing",
    status: true,
    before: {},
    taken: [{ status: { disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1 } }],
    refused: [[conditions({ status: "Maybe" }), 'status.conditions[0].status: Unsupported value: "Maybe"']],
  },
  {
    resource: policies,
    name: "each rule of each strategy",
    taken: [
      ...["MustRunAs", "MustRunAsNonRoot", "RunAsAny"].map((rule) => ({ "spec.runAsUser": { rule } })),
      ...["MustRunAs", "RunAsAny"].map((rule) => ({ "spec.seLinux": { rule } })),
      ...["MayRunAs", "MustRunAs", "RunAsAny"].flatMap((rule) => [
        { "spec.supplementalGroups": { rule, ranges: [range] } },
        { "spec.fsGroup": { rule, ranges: [range, { min: 1, max: 2 }] } },
      ]),
      { "spec.runAsGroup": { rule: "RunAsAny" } },
      { "spec.runAsGroup": { rule: "MustRunAs", ranges: [range] } },
      { "spec.runAsGroup": { rule: "MayRunAs", ranges: [range] } },
    ],
    refused: [
      [{ "spec.runAsGroup": { rule: "MayRunAs" } }, "spec.runAsGroup.ranges: Invalid value: []policy.IDRange(nil): must provide"],
      [
        { "spec.runAsGroup": { rule: "" } },
        'spec.runAsGroup.rule: Unsupported value: "": supported values: "MustRunAs", "RunAsAny", "MayRunAs"',
      ],
      [{ "spec.seLinux": undefined }, 'spec.seLinux.rule: Unsupported value: "": supported values: "MustRunAs", "RunAsAny"'],
      [{ "spec.seLinux": { rule: "MustRunAsNonRoot" } }, 'spec.seLinux.rule: Unsupported value: "MustRunAsNonRoot"'],
      [
        { "spec.fsGroup": { rule: "MustRunAs", ranges: [range, { min: 1, max: 0 }] } },
        "spec.fsGroup.ranges[1].min: Invalid value: 1: min cannot be greater",
      ],
    ],
  },
  {
    resource: policies,
    name: "each type of volume, paths, drivers and capabilities",
    taken: [
      { "spec.volumes": volumeTypes },
      { "spec.allowedHostPaths": [{ pathPrefix: "/a/..b/c.." }, { pathPrefix: "a" }] },
      { "spec.allowedFlexVolumes": [{ driver: "any thing" }], "spec.allowedCSIDrivers": [{ name: "a".repeat(63) }] },
      { "spec.allowedCapabilities": ["*"] },
      { "spec.allowedCapabilities": ["A"], "spec.requiredDropCapabilities": ["B"], "spec.defaultAddCapabilities": ["A", "C"] },
      { "spec.allowPrivilegeEscalation": true, "spec.defaultAllowPrivilegeEscalation": true },
      { "spec.allowPrivilegeEscalation": false, "spec.defaultAllowPrivilegeEscalation": false },
    ],
    refused: [
      [{ "spec.volumes": ["secret", "hostpath"] }, 'spec.volumes: Unsupported value: "hostpath"'],
      [
        { "spec.allowedCSIDrivers": [{ name: "a" }, { name: "a".repeat(64) }] },
        "spec.allowedCSIDrivers.allowedCSIDriver[1].name: Too long: must have at most 63 bytes",
      ],
    ],
  },
  {
    resource: policies,
    gates: { ProcMountType: true },
    name: "each type of /proc",
    taken: [{ "spec.allowedProcMountTypes": ["Default", "Unmasked"] }],
    refused: [[{ "spec.allowedProcMountTypes": ["Default", ""] }, 'spec.allowedProcMountTypes[1]: Unsupported value: ""']],
  },
  {
    resource: policies,
    name: "profiles in annotations",
    taken: [
      ...["runtime/default", "unconfined", "localhost/a"].map((profile) => appArmor("defaultProfileName", profile)),
      appArmor("allowedProfileNames", "runtime/default,unconfined,localhost/a"),
      ...["runtime/default", "docker/default", "unconfined", "localhost/a/b"].map((profile) =>
        seccomp("defaultProfileName", profile),
      ),
      seccomp("allowedProfileNames", "*"),
      seccomp("allowedProfileNames", "runtime/default,*"),
      appArmor("defaultProfileName", ""),
      seccomp("allowedProfileNames", ""),
    ],
    refused: [
      [
        appArmor("allowedProfileNames", "runtime/default,mine"),
        'metadata.annotations[apparmor.security.beta.kubernetes.io/allowedProfileNames]: Invalid value: "runtime/default,mine": invalid AppArmor profile name: "mine"',
      ],
      [
        appArmor("defaultProfileName", "unconfined,unconfined"),
        'metadata.annotations[apparmor.security.beta.kubernetes.io/defaultProfileName]: Invalid value: "unconfined,unconfined": invalid AppArmor',
      ],
      [
        seccomp("defaultProfileName", "*"),
        'metadata.annotations[seccomp.security.alpha.kubernetes.io/defaultProfileName]: Invalid value: "*": must be',
      ],
      [
        seccomp("allowedProfileNames", "unconfined,localhost/../a"),
        "metadata.annotations[seccomp.security.alpha.kubernetes.io/allowedProfileNames]: Invalid value",
      ],
    ],
  },
  {
    resource: policies,
    name: "sysctls and patterns of them",
    taken: [
      sysctls("*"),
      sysctls("net.*", "kernel.a_b-c", "a/b.*", "net.ipv4.ip*", "a*"),
      sysctls(`${"a".repeat(252)}*`),
      sysctls("a".repeat(253)),
      { "spec.allowedUnsafeSysctls": ["a.b"], "spec.forbiddenSysctls": ["a.c.*", "a.b.c"] },
    ],
    refused: [
      ...["a.*.b", "A", "a..*", ".*", "a.", "**", "a".repeat(254), `${"a".repeat(253)}*`].map(
        (sysctl) => [sysctls(sysctl), `spec.allowedUnsafeSysctls[0]: Invalid value: "${sysctl}": ${badSysctl}`] as const,
      ),
      [{ "spec.forbiddenSysctls": ["a", ""] }, 'spec.forbiddenSysctls[1]: Invalid value: "": empty sysctl not allowed'],
      [
        { "spec.forbiddenSysctls": ["a", "*"] },
        "spec.forbiddenSysctls.items: Forbidden: if '*' is present, must not specify other sysctls",
      ],
      [
        { "spec.allowedUnsafeSysctls": ["a.*"], "spec.forbiddenSysctls": ["a.b.*"] },
        'spec.forbiddenSysctls[0]: Invalid value: "a.b.*": sysctl overlaps with a.*',
      ],
    ],
  },
  {
    resource: policies,
    name: "runtime classes",
    taken: [classes(["*"]), classes(["a", "b.c"], "a"), classes(["*"], "a"), classes([])],
    refused: [
      [classes(["a"], "b"), 'spec.runtimeClass.allowedRuntimeClassNames: Required value: default "b" must be allowed'],
      [classes(["*", "a"]), 'spec.runtimeClass.allowedRuntimeClassNames: Invalid value: []string{"*", "a"}: if \'*\' is present'],
    ],
  },
  {
    resource: policies,
    name: "any other policy than before",
    before: {},
    taken: [{ "spec.privileged": true, "spec.volumes": ["*"] }],
    refused: [[{ "spec.volumes": ["x"] }, 'spec.volumes: Unsupported value: "x"']],
  },
]);
