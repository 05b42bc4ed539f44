import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "podsecuritypolicies.policy",
  {
    spec: {
      seLinux: { rule: "RunAsAny" },
      supplementalGroups: { rule: "RunAsAny" },
      runAsUser: { rule: "RunAsAny" },
      fsGroup: { rule: "RunAsAny" },
    },
  },
  [
    { name: "a policy", change: {}, want: [] },
    {
      name: "rules",
      change: {
        "spec.seLinux.rule": "a",
        "spec.supplementalGroups": { rule: "a", ranges: [{ min: 2, max: 1 }] },
        "spec.runAsUser": { rule: "a", ranges: [{ min: -1, max: -1 }] },
        "spec.fsGroup.rule": "a",
        "spec.runAsGroup": { rule: "a" },
      },
      want: [
        'spec.runAsUser.rule: Unsupported value: "a": supported values: "MustRunAs", "MustRunAsNonRoot", "RunAsAny"',
        "spec.runAsUser.ranges[0].min: Invalid value: -1: min cannot be negative",
        "spec.runAsUser.ranges[0].max: Invalid value: -1: max cannot be negative",
        'spec.runAsGroup.rule: Unsupported value: "a": supported values: "MustRunAs", "RunAsAny", "MayRunAs"',
        'spec.seLinux.rule: Unsupported value: "a": supported values: "MustRunAs", "RunAsAny"',
        'spec.supplementalGroups.rule: Unsupported value: "a": supported values: "MayRunAs", "MustRunAs", "RunAsAny"',
        "spec.supplementalGroups.ranges[0].min: Invalid value: 2: min cannot be greater than max",
        'spec.fsGroup.rule: Unsupported value: "a": supported values: "MayRunAs", "MustRunAs", "RunAsAny"',
      ],
    },
    {
      name: "volumes and capabilities",
      change: {
        "spec.volumes": ["mine"],
        "spec.allowedCapabilities": ["A"],
        "spec.requiredDropCapabilities": ["A", "B"],
        "spec.defaultAddCapabilities": ["B"],
      },
      want: [
        'spec.volumes: Unsupported value: "mine": supported values: "*", "awsElasticBlockStore", "azureDisk", "azureFile", "cephFS", "cinder", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "hostPath", "iscsi", "nfs", "persistentVolumeClaim", "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret", "storageos", "vsphereVolume"',
        'defaultAddCapabilities: Invalid value: "B": capability is listed in defaultAddCapabilities and requiredDropCapabilities',
        'allowedCapabilities: Invalid value: "A": capability is listed in allowedCapabilities and requiredDropCapabilities',
      ],
    },
    {
      name: "escalation",
      change: { "spec.allowPrivilegeEscalation": false, "spec.defaultAllowPrivilegeEscalation": true },
      want: [
        "spec.defaultAllowPrivilegeEscalation: Invalid value: true: Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true",
      ],
    },
    {
      name: "paths and drivers",
      change: {
        "spec.allowedHostPaths": [{ pathPrefix: "/a/.." }, { pathPrefix: "" }, { pathPrefix: "/b/.." }],
        "spec.allowedFlexVolumes": [{ driver: "" }],
        "spec.allowedProcMountTypes": ["Half"],
      },
      gates: { ProcMountType: true },
      want: [
        'spec.allowedProcMountTypes[0]: Unsupported value: "Half": supported values: "Default", "Unmasked"',
        "spec.allowedHostPaths[0]: Invalid value: \"/a/..\": must not contain '..'",
        "spec.allowedHostPaths[1]: Required value: is required",
        "spec.allowedFlexVolumes.allowedFlexVolumes[0].driver: Required value: must specify a driver",
      ],
    },
    {
      name: "sysctls",
      change: { "spec.allowedUnsafeSysctls": ["a", "a b"], "spec.forbiddenSysctls": ["a"] },
      want: [
        'spec.allowedUnsafeSysctls[1]: Invalid value: "a b": must have at most 253 characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]',
        'spec.allowedUnsafeSysctls[0]: Invalid value: "a": sysctl overlaps with a',
      ],
    },
    {
      name: "ports",
      change: {
        "spec.hostPorts": [
          { min: 5, max: 4 },
          { min: -1, max: 70000 },
        ],
      },
      want: [],
    },
    {
      name: "profiles in annotations",
      change: {
        "metadata.annotations": {
          "seccomp.security.alpha.kubernetes.io/defaultProfileName": "mine",
          "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "*,mine",
          "apparmor.security.beta.kubernetes.io/defaultProfileName": "mine",
          "apparmor.security.beta.kubernetes.io/allowedProfileNames": "mine",
        },
      },
      want: [
        'metadata.annotations[apparmor.security.beta.kubernetes.io/defaultProfileName]: Invalid value: "mine": invalid AppArmor profile name: "mine"',
        'metadata.annotations[apparmor.security.beta.kubernetes.io/allowedProfileNames]: Invalid value: "mine": invalid AppArmor profile name: "mine"',
        'metadata.annotations[seccomp.security.alpha.kubernetes.io/defaultProfileName]: Invalid value: "mine": must be a valid seccomp profile',
        'metadata.annotations[seccomp.security.alpha.kubernetes.io/allowedProfileNames]: Invalid value: "mine": must be a valid seccomp profile',
      ],
    },
    {
      name: "sysctls of no name, all of them and more, and forbidden ones",
      change: { "spec.allowedUnsafeSysctls": ["", "*", "net.a"], "spec.forbiddenSysctls": ["net.*"] },
      want: [
        'spec.allowedUnsafeSysctls[0]: Invalid value: "": empty sysctl not allowed',
        "spec.allowedUnsafeSysctls.items: Forbidden: if '*' is present, must not specify other sysctls",
        'spec.forbiddenSysctls[0]: Invalid value: "net.*": sysctl overlaps with *',
        'spec.allowedUnsafeSysctls[2]: Invalid value: "net.a": sysctl overlaps with net.*',
      ],
    },
    {
      name: "a forbidden sysctl of those allowed",
      change: { "spec.allowedUnsafeSysctls": ["net.*"], "spec.forbiddenSysctls": ["net.a"] },
      want: ['spec.forbiddenSysctls[0]: Invalid value: "net.a": sysctl overlaps with net.*'],
    },
    {
      name: "all capabilities but some",
      change: { "spec.allowedCapabilities": ["*"], "spec.requiredDropCapabilities": ["A"] },
      want: [
        'requiredDropCapabilities: Invalid value: []core.Capability{"A"}: must be empty when all capabilities are allowed by a wildcard',
      ],
    },
    {
      name: "a driver of no name",
      change: { "spec.allowedCSIDrivers": [{ name: "" }] },
      want: [
        "spec.allowedCSIDrivers.allowedCSIDriver[0].name: Required value",
        "spec.allowedCSIDrivers.allowedCSIDriver[0].name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "groups in ranges that no rule wants",
      change: { "spec.runAsGroup": { rule: "RunAsAny", ranges: [{ min: 1, max: 2 }] } },
      want: ["spec.runAsGroup.ranges: Invalid value: []policy.IDRange{policy.IDRange{Min:1, Max:2}}: Ranges must be empty"],
    },
    {
      name: "groups in no ranges",
      change: { "spec.runAsGroup": { rule: "MustRunAs" } },
      want: ["spec.runAsGroup.ranges: Invalid value: []policy.IDRange(nil): must provide at least one range"],
    },
    {
      name: "runtime classes",
      change: { "spec.runtimeClass": { allowedRuntimeClassNames: ["_", "a", "a"], defaultRuntimeClassName: "_" } },
      want: [
        "spec.runtimeClass.allowedRuntimeClassNames[0]: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.runtimeClass.allowedRuntimeClassNames[2]: Duplicate value: "a"',
        "spec.runtimeClass.defaultRuntimeClassName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "types of mounting /proc, which are dropped without their gate",
      change: { "spec.allowedProcMountTypes": ["Half"] },
      want: [],
    },
    {
      name: "all runtime classes and one of them",
      change: { "spec.runtimeClass": { allowedRuntimeClassNames: ["*", "a"], defaultRuntimeClassName: "b" } },
      want: [
        `spec.runtimeClass.allowedRuntimeClassNames: Invalid value: []string{"*", "a"}: if '*' is present, must not specify other RuntimeClass names`,
      ],
    },
    {
      name: "a default that is not allowed",
      change: { "spec.runtimeClass": { allowedRuntimeClassNames: ["a"], defaultRuntimeClassName: "b" } },
      want: ['spec.runtimeClass.allowedRuntimeClassNames: Required value: default "b" must be allowed'],
    },
    {
      name: "an unknown rule, later",
      before: {},
      change: { "spec.fsGroup.rule": "Mine" },
      want: ['spec.fsGroup.rule: Unsupported value: "Mine": supported values: "MayRunAs", "MustRunAs", "RunAsAny"'],
    },
    {
      name: "forbidden sysctls that are none",
      change: { "spec.forbiddenSysctls": ["", "A", "*"] },
      want: [
        'spec.forbiddenSysctls[0]: Invalid value: "": empty sysctl not allowed',
        'spec.forbiddenSysctls[1]: Invalid value: "A": must have at most 253 characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]',
        "spec.forbiddenSysctls.items: Forbidden: if '*' is present, must not specify other sysctls",
      ],
    },
  ],
);
