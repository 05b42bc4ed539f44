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
        "spec.allowedHostPaths": [{ pathPrefix: "" }, { pathPrefix: "/a/.." }],
        "spec.allowedFlexVolumes": [{ driver: "" }],
        "spec.allowedProcMountTypes": ["Half"],
      },
      want: [
        'spec.allowedProcMountTypes[0]: Unsupported value: "Half": supported values: "Default", "Unmasked"',
        "spec.allowedHostPaths[0]: Required value: is required",
        "spec.allowedHostPaths[1]: Invalid value: \"/a/..\": must not contain '..'",
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
  ],
);
