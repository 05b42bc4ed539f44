import { testKindRules } from "../../../../testing/kind-rules.ts";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  {
    name: "security of a pod",
    change: {
      "spec.securityContext": {
        runAsUser: -1,
        runAsGroup: -1,
        fsGroup: -1,
        supplementalGroups: [-1],
        fsGroupChangePolicy: "Never",
        sysctls: [{ name: "" }, { name: "A" }, { name: "a" }, { name: "a" }],
        seccompProfile: { type: "Localhost" },
      },
    },
    want: [
      "spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "spec.securityContext.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "spec.securityContext.supplementalGroups[0]: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "spec.securityContext.sysctls[0].name: Required value",
      'spec.securityContext.sysctls[1].name: Invalid value: "A": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$',
      'spec.securityContext.sysctls[3].name: Duplicate value: "a"',
      'spec.securityContext.fsGroupChangePolicy: Unsupported value: "Never": supported values: "Always", "OnRootMismatch"',
      "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
    ],
  },
  {
    name: "seccomp profiles",
    change: { "spec.containers[0].securityContext": { seccompProfile: { type: "RuntimeDefault", localhostProfile: "x" } } },
    want: [
      'spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: core.SeccompProfile{Type:"RuntimeDefault", LocalhostProfile:(*string)(0xc000000000)}: can only be set when seccomp type is Localhost',
    ],
  },
  {
    name: "an unknown and a climbing seccomp profile",
    change: {
      "spec.securityContext": { seccompProfile: { type: "Mine" } },
      "spec.containers[0].securityContext": { seccompProfile: { type: "Localhost", localhostProfile: "../x" } },
    },
    want: [
      // The annotation for older kubelets is derived from the field and validated too.
      "metadata.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: \"../x\": must not contain '..'",
      "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: \"../x\": must not contain '..'",
      'spec.securityContext.seccompProfile.type: Unsupported value: "Mine": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
    ],
  },
  {
    name: "privilege without escalation",
    change: { "spec.containers[0].securityContext": { privileged: true, allowPrivilegeEscalation: false } },
    want: [
      "spec.containers[0].securityContext: Invalid value: core.SecurityContext{Capabilities:(*core.Capabilities)(nil), Privileged:(*bool)(0xc000000000), SELinuxOptions:(*core.SELinuxOptions)(nil), WindowsOptions:(*core.WindowsSecurityContextOptions)(nil), RunAsUser:(*int64)(nil), RunAsGroup:(*int64)(nil), RunAsNonRoot:(*bool)(nil), ReadOnlyRootFilesystem:(*bool)(nil), AllowPrivilegeEscalation:(*bool)(0xc000000000), ProcMount:(*core.ProcMountType)(nil), SeccompProfile:(*core.SeccompProfile)(nil)}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    ],
  },
  {
    name: "an administrator without escalation, an unmasked proc",
    change: {
      "spec.containers[0].securityContext": {
        capabilities: { add: ["CAP_SYS_ADMIN"] },
        allowPrivilegeEscalation: false,
        procMount: "Half",
        runAsUser: -1,
      },
    },
    want: [
      "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "spec.containers[0].securityContext: Invalid value: core.SecurityContext{Capabilities:(*core.Capabilities)(0xc000000000), Privileged:(*bool)(nil), SELinuxOptions:(*core.SELinuxOptions)(nil), WindowsOptions:(*core.WindowsSecurityContextOptions)(nil), RunAsUser:(*int64)(0xc000000000), RunAsGroup:(*int64)(nil), RunAsNonRoot:(*bool)(nil), ReadOnlyRootFilesystem:(*bool)(nil), AllowPrivilegeEscalation:(*bool)(0xc000000000), ProcMount:(*core.ProcMountType)(0xc000000000), SeccompProfile:(*core.SeccompProfile)(nil)}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
    ],
  },
  {
    name: "windows options",
    change: {
      "spec.securityContext": { windowsOptions: { gmsaCredentialSpecName: "_", gmsaCredentialSpec: "", runAsUserName: "a/b" } },
    },
    want: [
      "spec.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
      'spec.securityContext.windowsOptions.runAsUserName: Invalid value: "a/b": runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]',
    ],
  },
  {
    name: "a windows user name",
    change: { "spec.containers[0].securityContext": { windowsOptions: { runAsUserName: "a\\b\\c" } } },
    want: [
      'spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot contain more than one backslash',
    ],
  },
  {
    name: "seccomp annotations",
    change: {
      "metadata.annotations": {
        "seccomp.security.alpha.kubernetes.io/pod": "mine",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/../x",
      },
    },
    want: [
      'metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "mine": must be a valid seccomp profile',
      "metadata.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: \"../x\": must not contain '..'",
      "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: \"../x\": must not contain '..'",
    ],
  },
  {
    name: "a seccomp annotation unlike the field",
    change: {
      "metadata.annotations": { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" },
      "spec.securityContext": { seccompProfile: { type: "RuntimeDefault" } },
    },
    want: ["spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"],
  },
  {
    name: "AppArmor annotations",
    change: {
      "metadata.annotations": {
        "container.apparmor.security.beta.kubernetes.io/c": "mine",
        "container.apparmor.security.beta.kubernetes.io/d": "unconfined",
      },
    },
    want: [
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Invalid value: "mine": invalid AppArmor profile name: "mine"',
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container not found',
    ],
  },
  {
    name: "an AppArmor profile of an init container, beside one of no container",
    change: {
      "spec.initContainers": [{ name: "i", image: "x", imagePullPolicy: "Always", terminationMessagePolicy: "File" }],
      "metadata.annotations": {
        "container.apparmor.security.beta.kubernetes.io/i": "runtime/default",
        "container.apparmor.security.beta.kubernetes.io/j": "runtime/default",
      },
    },
    want: ['metadata.annotations[container.apparmor.security.beta.kubernetes.io/j]: Invalid value: "j": container not found'],
  },
  {
    name: "a deletion cost",
    change: { "metadata.annotations": { "controller.kubernetes.io/pod-deletion-cost": "+5" } },
    want: ['metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+5": must be a 32bit integer'],
  },
  {
    name: "overhead without and with a bad amount",
    change: { "spec.overhead": { cpu: "-1" } },
    want: ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
  },
  {
    name: "a mirror pod without node",
    change: { "metadata.annotations": { "kubernetes.io/config.mirror": "x" } },
    want: [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
    ],
  },
  {
    name: "a seccomp profile of no type",
    change: { "spec.securityContext": { seccompProfile: { type: "" } } },
    want: ["spec.securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set"],
  },
  {
    name: "another local profile in the annotation",
    change: {
      "metadata.annotations": { "seccomp.security.alpha.kubernetes.io/pod": "localhost/a" },
      "spec.securityContext": { seccompProfile: { type: "Localhost", localhostProfile: "b" } },
    },
    want: ["spec.securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match"],
  },
  {
    name: "a mirror pod with tokens",
    change: {
      "metadata.annotations": { "kubernetes.io/config.mirror": "x" },
      "spec.nodeName": "n",
      "spec.volumes": [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }],
    },
    want: [
      "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
    ],
  },
]);
