/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";
import volumeTypes from "./volume-types.json" with { type: "json" };

const resource = "podsecuritypolicies.policy";
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
    resource,
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
    resource,
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
    resource,
    gates: { ProcMountType: true },
    name: "each type of /proc",
    taken: [{ "spec.allowedProcMountTypes": ["Default", "Unmasked"] }],
    refused: [[{ "spec.allowedProcMountTypes": ["Default", ""] }, 'spec.allowedProcMountTypes[1]: Unsupported value: ""']],
  },
  {
    resource,
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
    resource,
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
    resource,
    name: "runtime classes",
    taken: [classes(["*"]), classes(["a", "b.c"], "a"), classes(["*"], "a"), classes([])],
    refused: [
      [classes(["a"], "b"), 'spec.runtimeClass.allowedRuntimeClassNames: Required value: default "b" must be allowed'],
      [classes(["*", "a"]), 'spec.runtimeClass.allowedRuntimeClassNames: Invalid value: []string{"*", "a"}: if \'*\' is present'],
    ],
  },
  {
    resource,
    name: "any other policy than before",
    before: {},
    taken: [{ "spec.privileged": true, "spec.volumes": ["*"] }],
    refused: [[{ "spec.volumes": ["x"] }, 'spec.volumes: Unsupported value: "x"']],
  },
]);
