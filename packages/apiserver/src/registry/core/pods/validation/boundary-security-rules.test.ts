/** Values of security contexts, sysctls, profiles and users that are just taken, and those next to them that are refused. */
import { testKindRules } from "../../../../testing/kind-rules.ts";

const small = { spec: { containers: [{ name: "c", image: "i" }] } };
const init = (more: object): object => ({ name: "a", image: "i", ...more });
const sysctls = (...names: string[]): Record<string, unknown> => ({
  "spec.securityContext": { sysctls: names.map((name) => ({ name, value: "1" })) },
});
const sysctlText =
  "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const windows = (runAsUserName: string): Record<string, unknown> => ({
  "spec.securityContext": { windowsOptions: { runAsUserName } },
});
const windowsAt = "spec.securityContext.windowsOptions.runAsUserName";
/** A domain of labels of at most 63 characters. */
const domainOf = (length: number): string => `${"a".repeat(63)}.`.repeat(3) + `${"a".repeat(length - 194)}.a`;
const domainText = "runAsUserName's Domain doesn't match the NetBios nor the DNS format";

testKindRules("pods", small, [
  {
    name: "an empty profile of AppArmor and one of a file, and annotations of seccomp that agree with the fields",
    change: {
      "metadata.annotations": {
        "container.apparmor.security.beta.kubernetes.io/c": "",
        "container.apparmor.security.beta.kubernetes.io/d": "localhost/x",
        "seccomp.security.alpha.kubernetes.io/pod": "docker/default",
        "container.seccomp.security.alpha.kubernetes.io/c": "localhost/a/b",
        "container.seccomp.security.alpha.kubernetes.io/d": "unconfined",
      },
      "spec.securityContext": { seccompProfile: { type: "RuntimeDefault" } },
      "spec.containers": [
        { name: "c", image: "i", securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "a/b" } } },
        { name: "d", image: "i", securityContext: { seccompProfile: { type: "Unconfined" } } },
      ],
    },
    want: [],
  },
  {
    name: "annotations of seccomp that are of another type than the fields, of each container",
    change: {
      "metadata.annotations": {
        "container.seccomp.security.alpha.kubernetes.io/a": "runtime/default",
        "container.seccomp.security.alpha.kubernetes.io/d": "unconfined",
      },
      "spec.initContainers": [init({ securityContext: { seccompProfile: { type: "Unconfined" } } })],
      "spec.containers[1]": {
        name: "d",
        image: "i",
        securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "a" } },
      },
    },
    want: ["spec.initContainers[0]", "spec.containers[1]"].map(
      (at) => `${at}.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match`,
    ),
  },
  {
    name: "sysctls of 253 characters, with slashes, and with dots between slashes",
    change: sysctls("a".repeat(253), "net/ipv4/ip_forward", "net/ipv4/conf/eth0.1/x-y"),
    want: [],
  },
  { name: "a sysctl with a dot in its second part, and another with dots alone", change: sysctls("a/b.c", "a.b.c"), want: [] },
  {
    name: "sysctls of 254 characters, with an empty part, and ending with a hyphen",
    change: sysctls("a".repeat(254), "net//x", "net.x-"),
    want: ["a".repeat(254), "net//x", "net.x-"].map(
      (name, i) => `spec.securityContext.sysctls[${i}].name: Invalid value: "${name}": ${sysctlText}`,
    ),
  },
  { name: "the processes of the host alone", change: { "spec.hostPID": true }, want: [] },
  { name: "one process namespace alone", change: { "spec.shareProcessNamespace": true }, want: [] },
  {
    name: "SYS_ADMIN by another name without escalation",
    change: {
      "spec.containers[0].securityContext": { allowPrivilegeEscalation: false, capabilities: { add: ["SYS_ADMIN"] } },
    },
    want: [],
  },
  { name: "a NetBIOS domain of 15 characters", change: windows(`A_${"B".repeat(13)}\\u`), want: [] },
  {
    name: "a NetBIOS domain of 16 characters",
    change: windows(`A_${"B".repeat(14)}\\u`),
    want: [`${windowsAt}: Invalid value: "A_${"B".repeat(14)}\\\\u": ${domainText}`],
  },
  { name: "a DNS domain with a part of 63 characters", change: windows(`${"b".repeat(63)}.c\\u`), want: [] },
  {
    name: "a DNS domain with a part of 64 characters",
    change: windows(`${"b".repeat(64)}.c\\u`),
    want: [`${windowsAt}: Invalid value: "${"b".repeat(64)}.c\\\\u": ${domainText}`],
  },
  {
    name: "a domain that begins with a dot",
    change: windows(".a\\u"),
    want: [`${windowsAt}: Invalid value: ".a\\\\u": ${domainText}`],
  },
  { name: "an empty domain", change: windows("\\u"), want: [`${windowsAt}: Invalid value: "\\\\u": ${domainText}`] },
  {
    name: "a user of nothing in a domain",
    change: windows("A\\"),
    want: [`${windowsAt}: Invalid value: "A\\\\": runAsUserName's User cannot be empty`],
  },
  {
    name: "a user of a control character",
    change: windows("a\u007f"),
    want: [`${windowsAt}: Invalid value: "a\\x7f": runAsUserName cannot contain control characters`],
  },
  { name: "a user of dots and spaces among others", change: windows("a. b~"), want: [] },
  ...[" ", ". ."].map((user) => ({
    name: `a user of ${JSON.stringify(user)}`,
    change: windows(user),
    want: [`${windowsAt}: Invalid value: "${user}": runAsUserName's User cannot contain only periods or spaces`],
  })),
  {
    name: "a container of the host in a pod that says nothing and is not on the host's network",
    change: { "spec.containers[0].securityContext": { windowsOptions: { hostProcess: true } } },
    want: ["spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"],
  },
  {
    name: "containers of the host by the word of the pod alone",
    change: {
      "spec.hostNetwork": true,
      "spec.securityContext": { windowsOptions: { hostProcess: true } },
      "spec.initContainers": [init({})],
    },
    want: [],
  },
  {
    name: "no sysctls for Windows",
    gates: { IdentifyPodOS: true },
    change: { "spec.os": { name: "windows" }, "spec.hostPID": false, "spec.securityContext": { sysctls: [] } },
    want: [],
  },
  {
    name: "empty profiles of seccomp",
    change: {
      "metadata.annotations": {
        "seccomp.security.alpha.kubernetes.io/pod": "",
        "container.seccomp.security.alpha.kubernetes.io/c": "",
      },
    },
    want: ["seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/c"].map(
      (key) => `metadata.annotations.${key}: Invalid value: "": must be a valid seccomp profile`,
    ),
  },
  {
    name: "a profile in a field that ends as that of the annotation",
    change: {
      "metadata.annotations": { "seccomp.security.alpha.kubernetes.io/pod": "localhost/a/b" },
      "spec.securityContext": { seccompProfile: { type: "Localhost", localhostProfile: "b" } },
    },
    want: ["spec.securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation and field must match"],
  },
  {
    name: "a sysctl once with dots and once with slashes",
    change: sysctls("net.ipv4.tcp_syncookies", "net/ipv4/tcp_syncookies"),
    want: ['spec.securityContext.sysctls[1].name: Duplicate value: "net/ipv4/tcp_syncookies"'],
  },
  {
    name: "a container of the host in a pod that is not",
    change: {
      "spec.hostNetwork": true,
      "spec.securityContext": { windowsOptions: { hostProcess: false } },
      "spec.containers[0].securityContext": { windowsOptions: { hostProcess: true } },
    },
    want: [
      "spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: true: pod hostProcess value must be identical if both are specified, was false",
    ],
  },
  {
    name: "options of Windows that say nothing, of a Linux pod and its second container",
    gates: { IdentifyPodOS: true },
    change: {
      ...{ "spec.os": { name: "linux" }, "spec.securityContext": { windowsOptions: {} } },
      "spec.containers[1]": { name: "d", image: "i", securityContext: { windowsOptions: {} } },
    },
    want: ["spec", "spec.containers[1]"].map(
      (at) => `${at}.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod`,
    ),
  },
  {
    name: "ports of the host's network that are those of the containers",
    change: {
      "spec.hostNetwork": true,
      "spec.containers[0].ports": [{ containerPort: 80, hostPort: 80 }, { containerPort: 81 }],
    },
    want: [],
  },
  {
    name: "other ports of the host's network, of the second container and its second port",
    undefaulted: true,
    change: {
      "spec.hostNetwork": true,
      ...{
        "spec.dnsPolicy": "ClusterFirst",
        "spec.restartPolicy": "Always",
        "spec.containers": [0, 1].map((i) => ({
          ...{ name: `c${i}`, image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File" },
          ports: [80, 81].map((port) => ({ protocol: "TCP", containerPort: port + 2 * i, hostPort: port + 4 * i })),
        })),
      },
    },
    want: [0, 1].map(
      (j) =>
        `spec.containers[1].ports[${j}].containerPort: Invalid value: ${82 + j}: must match \`hostPort\` when \`hostNetwork\` is true`,
    ),
  },
  {
    name: "a field of seccomp of an unknown type, without looking at the annotation",
    change: {
      "metadata.annotations": { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" },
      "spec.securityContext": { seccompProfile: { type: "Mine" } },
    },
    want: [
      'spec.securityContext.seccompProfile.type: Unsupported value: "Mine": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
    ],
  },
  {
    name: "an empty user",
    change: windows(""),
    want: [`${windowsAt}: Invalid value: "": runAsUserName cannot be an empty string`],
  },
  { name: "a user of 104 characters", change: windows("u".repeat(104)), want: [] },
  {
    name: "a user of 105 characters",
    change: windows("u".repeat(105)),
    want: [
      `${windowsAt}: Invalid value: "${"u".repeat(105)}": runAsUserName's User length must not be longer than 104 characters`,
    ],
  },
  { name: "a domain of 255 characters", change: windows(`${domainOf(255)}\\u`), want: [] },
  {
    name: "a domain of 256 characters",
    change: windows(`${domainOf(256)}\\u`),
    want: [`${windowsAt}: Invalid value: "${domainOf(256)}\\\\u": runAsUserName's Domain length must be under 256 characters`],
  },
]);
