import { testKindRules } from "../../../../testing/kind-rules.ts";

const tooLong = "x".repeat(64 * 1024 + 1);

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  {
    name: "a system of no name",
    gates: { IdentifyPodOS: true },
    change: { "spec.os": { name: "" } },
    want: ["spec.os.name: Required value: cannot be empty"],
  },
  {
    name: "an unknown system",
    gates: { IdentifyPodOS: true },
    change: { "spec.os": { name: "plan9" } },
    want: ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
  },
  {
    name: "fields that Linux does not have",
    gates: { IdentifyPodOS: true },
    change: {
      "spec.os": { name: "linux" },
      "spec.securityContext": { windowsOptions: { runAsUserName: "u" } },
      "spec.containers[0].securityContext": { windowsOptions: { runAsUserName: "u" } },
    },
    want: [
      "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
      "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
    ],
  },
  {
    name: "pod fields that Windows does not have",
    gates: { IdentifyPodOS: true },
    change: {
      "spec.os": { name: "windows" },
      "spec.hostNetwork": true,
      "spec.hostPID": true,
      "spec.hostIPC": true,
      "spec.shareProcessNamespace": false,
      "spec.securityContext": {
        seLinuxOptions: {},
        seccompProfile: { type: "RuntimeDefault" },
        fsGroup: 1,
        fsGroupChangePolicy: "Always",
        sysctls: [{ name: "a", value: "b" }],
        runAsUser: 1,
        runAsGroup: 1,
        supplementalGroups: [1],
      },
    },
    want: [
      "spec.securityContext.seLinuxOptions: Forbidden: cannot be set for a windows pod",
      "spec.hostPID: Forbidden: cannot be set for a windows pod",
      "spec.hostIPC: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.seccompProfile: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.fsGroupChangePolicy: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.sysctls: Forbidden: cannot be set for a windows pod",
      "spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.runAsGroup: Forbidden: cannot be set for a windows pod",
      "spec.securityContext.supplementalGroups: Forbidden: cannot be set for a windows pod",
    ],
  },
  {
    name: "container fields that Windows does not have",
    gates: { IdentifyPodOS: true },
    change: {
      "spec.os": { name: "windows" },
      "spec.containers[0].securityContext": {
        seLinuxOptions: {},
        seccompProfile: { type: "RuntimeDefault" },
        capabilities: {},
        readOnlyRootFilesystem: true,
        privileged: false,
        allowPrivilegeEscalation: true,
        procMount: "Default",
        runAsUser: 1,
        runAsGroup: 1,
      },
    },
    want: [
      "spec.containers[0].securityContext.seLinuxOptions: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.seccompProfile: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.capabilities: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.readOnlyRootFilesystem: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.allowPrivilegeEscalation: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.procMount: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
      "spec.containers[0].securityContext.runAsGroup: Forbidden: cannot be set for a windows pod",
    ],
  },
  {
    name: "a process of the host that is not on its network",
    change: { "spec.securityContext": { windowsOptions: { hostProcess: true } } },
    want: ["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"],
  },
  {
    name: "a container unlike its pod",
    change: {
      "spec.hostNetwork": true,
      "spec.securityContext": { windowsOptions: { hostProcess: true } },
      "spec.containers[0].securityContext": { windowsOptions: { hostProcess: false } },
    },
    want: [
      "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true",
    ],
  },
  {
    name: "no container of the host in a pod that is one, so that its network is not asked for",
    change: {
      "spec.securityContext": { windowsOptions: { hostProcess: true } },
      "spec.containers[0].securityContext": { windowsOptions: { hostProcess: false } },
    },
    want: [
      "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true",
    ],
  },
  {
    name: "processes of the host beside others",
    change: {
      "spec.hostNetwork": true,
      "spec.containers[1]": { name: "d", image: "i", securityContext: { windowsOptions: { hostProcess: true } } },
    },
    want: [
      'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers',
    ],
  },
  {
    name: "processes of the host where there are none",
    gates: { WindowsHostProcessContainers: false },
    change: {
      "spec.hostNetwork": true,
      "spec.securityContext": { windowsOptions: { hostProcess: true } },
      "spec.containers[0].securityContext": { windowsOptions: { hostProcess: true } },
    },
    want: [
      "spec.securityContext.windowsOptions.hostProcess: Forbidden: not allowed when feature gate 'WindowsHostProcessContainers' is not enabled",
    ],
  },
  {
    name: "a container of the host where there are none",
    gates: { WindowsHostProcessContainers: false },
    change: { "spec.hostNetwork": true, "spec.containers[0].securityContext": { windowsOptions: { hostProcess: true } } },
    want: [
      "spec.containers[0].securityContext.windowsOptions.hostProcess: Forbidden: not allowed when feature gate 'WindowsHostProcessContainers' is not enabled",
      "spec: Forbidden: pod must not contain Windows hostProcess containers when feature gate 'WindowsHostProcessContainers' is not enabled",
    ],
  },
  {
    name: "credentials that are too long",
    change: { "spec.securityContext": { windowsOptions: { gmsaCredentialSpec: tooLong } } },
    want: [
      `spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "${tooLong}": gmsaCredentialSpec size must be under 64 KiB`,
    ],
  },
]);
