/** Values of pods that are just taken, and those next to them that are refused. */
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { testKindRules } from "../../../../testing/kind-rules.ts";

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const small = { spec: { containers: [{ name: "c", image: "i" }] } };
const init = (more: object): object => ({ name: "a", image: "i", ...more });
const tcp = { tcpSocket: { port: 1 } };
const tcpProbe = { ...tcp, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

testKindRules("pods", small, [
  {
    name: "names with dots of an account, a node, a priority class and a runtime class",
    change: {
      "spec.serviceAccountName": "a.b",
      "spec.nodeName": "a.b",
      "spec.priorityClassName": "a.b",
      "spec.runtimeClassName": "a.b",
    },
    want: [],
  },
  {
    name: "a subdomain with a dot beside a host name",
    change: { "spec.hostname": "a", "spec.subdomain": "a.b" },
    want: [`spec.subdomain: Invalid value: "a.b": ${labelText}`],
  },
  {
    name: "domains to search that end with a dot, but not with two",
    change: { "spec.dnsConfig": { searches: ["a.b.", "a.b.."] } },
    want: [`spec.dnsConfig.searches[1]: Invalid value: "a.b.": ${subdomainText}`],
  },
  {
    name: "a name server with policy None",
    change: { "spec.dnsPolicy": "None", "spec.dnsConfig": { nameservers: ["fd00::1"] } },
    want: [],
  },
  {
    name: "a second DNS option and a second alias's second name that are none",
    change: {
      "spec.dnsConfig": { options: [{ name: "ndots", value: "2" }, { value: "x" }] },
      "spec.hostAliases": [
        { ip: "10.0.0.1", hostnames: ["a"] },
        { ip: "10.0.0.2", hostnames: ["a.b", "_"] },
      ],
    },
    want: [
      "spec.dnsConfig.options[1]: Required value: must not be empty",
      `spec.hostAliases.hostnames: Invalid value: "_": ${subdomainText}`,
    ],
  },
  {
    name: "init containers that use one host port, one after the other",
    change: {
      "spec.initContainers": [
        init({ ports: [{ containerPort: 1, hostPort: 1 }] }),
        init({ name: "b", ports: [{ containerPort: 2, hostPort: 1 }] }),
      ],
    },
    want: [],
  },
  {
    name: "one host port of two protocols",
    change: {
      "spec.containers[0].ports": [
        { containerPort: 1, hostPort: 1, protocol: "TCP" },
        { containerPort: 1, hostPort: 1, protocol: "UDP" },
        { containerPort: 1, hostPort: 1, protocol: "SCTP" },
      ],
    },
    want: [],
  },
  {
    name: "a port name of each of two containers",
    change: {
      "spec.containers[0].ports": [{ containerPort: 1, name: "http" }],
      "spec.containers[1]": { name: "d", image: "i", ports: [{ containerPort: 2, name: "http" }] },
    },
    want: [],
  },
  {
    name: "liveness and startup probes of an init container",
    change: { "spec.initContainers": [init({ livenessProbe: tcp, startupProbe: tcp })] },
    want: ["livenessProbe", "startupProbe"].map(
      (field) =>
        `spec.initContainers[0].${field}: Invalid value: ${goStruct("core/v1.Probe", tcpProbe).text}: must not be set for init containers`,
    ),
  },
  {
    name: "an image with a space behind",
    change: { "spec.containers[0].image": "i " },
    want: ['spec.containers[0].image: Invalid value: "i ": must not have leading or trailing whitespace'],
  },
  {
    name: "a named port to probe, and two successes for readiness",
    change: { "spec.containers[0].readinessProbe": { tcpSocket: { port: "http" }, successThreshold: 2 } },
    want: [],
  },
  {
    name: "less than no success for readiness",
    change: { "spec.containers[0].readinessProbe": { ...tcp, successThreshold: -1 } },
    want: ["spec.containers[0].readinessProbe.successThreshold: Invalid value: -1: must be greater than or equal to 0"],
  },
  {
    name: "less than no success for liveness and for startup",
    change: {
      "spec.containers[0].livenessProbe": { ...tcp, successThreshold: -1 },
      "spec.containers[0].startupProbe": { ...tcp, successThreshold: -1 },
    },
    want: [
      ...["livenessProbe", "startupProbe"].map(
        (field) => `spec.containers[0].${field}.successThreshold: Invalid value: -1: must be greater than or equal to 0`,
      ),
      ...["livenessProbe", "startupProbe"].map(
        (field) => `spec.containers[0].${field}.successThreshold: Invalid value: -1: must be 1`,
      ),
    ],
  },
  {
    name: "a token of an account whose name is empty",
    change: {
      "spec.serviceAccountName": "",
      "spec.volumes": [
        { name: "v", projected: { sources: [{ secret: { name: "s" } }, { serviceAccountToken: { path: "t" } }] } },
      ],
    },
    want: [
      "spec.volumes[0].projected.sources[1].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
    ],
  },
  {
    name: "a second header that is none",
    change: {
      "spec.containers[0].livenessProbe": {
        httpGet: {
          port: "http",
          scheme: "HTTPS",
          httpHeaders: [
            { name: "X-A", value: "" },
            { name: "X_A", value: "" },
          ],
        },
      },
    },
    want: [
      "spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: \"X_A\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
    ],
  },
  {
    name: "huge pages with memory alone, and with a request of cpu alone",
    change: {
      "spec.containers[0].resources": { limits: { "hugepages-2Mi": "2Mi", memory: "1Gi" } },
      "spec.containers[1]": {
        name: "d",
        image: "i",
        resources: { limits: { "hugepages-2Mi": "4Mi" }, requests: { "hugepages-2Mi": "4Mi", cpu: "1" } },
      },
    },
    want: [],
  },
  {
    name: "huge pages of which fewer are requested than allowed",
    change: {
      "spec.containers[0].resources": {
        limits: { "hugepages-2Mi": "4Mi", cpu: "1" },
        requests: { "hugepages-2Mi": "2Mi" },
      },
    },
    want: ['spec.containers[0].resources.requests: Invalid value: "2Mi": must be equal to hugepages-2Mi limit'],
  },
  {
    name: "huge pages of no size",
    change: { "spec.containers[0].resources": { limits: { "hugepages-0": "1", cpu: "1" } } },
    want: ["limits", "requests"].map(
      (list) =>
        `spec.containers[0].resources.${list}[hugepages-0]: Invalid value: "1": 1 is not positive integer multiple of hugepages-0`,
    ),
  },
  {
    name: "local storage, and a whole number of an extended resource written in thousandths",
    change: { "spec.containers[0].resources": { limits: { "ephemeral-storage": "1Gi", "a.com/gpu": "2000m" } } },
    want: [],
  },
  {
    name: "resources of claims and of quotas",
    change: { "spec.containers[0].resources.limits": { storage: "1", pods: "1", "requests.cpu": "1" } },
    want: ["limits", "requests"].flatMap((list) =>
      ["storage", "pods", "requests.cpu"].map(
        (name) =>
          `spec.containers[0].resources.${list}[${name}]: Invalid value: "${name}": must be a standard resource for containers`,
      ),
    ),
  },
  {
    name: "propagation both ways of a privileged container",
    change: {
      "spec.volumes": [{ name: "v", emptyDir: {} }],
      "spec.containers[0].securityContext": { privileged: true },
      "spec.containers[0].volumeMounts": [
        { name: "v", mountPath: "/x", mountPropagation: "Bidirectional" },
        { name: "v", mountPath: "/y", mountPropagation: "HostToContainer" },
        { name: "v", mountPath: "/z", mountPropagation: "None" },
      ],
    },
    want: [],
  },
  {
    name: "a generic ephemeral volume as a device",
    change: {
      "spec.volumes": [
        {
          name: "v",
          ephemeral: {
            volumeClaimTemplate: {
              metadata: { labels: { a: "b" }, annotations: { a: "b" } },
              spec: { accessModes: ["ReadWriteOnce"], volumeMode: "Block", resources: { requests: { storage: "1Gi" } } },
            },
          },
        },
      ],
      "spec.containers[0].volumeDevices": [{ name: "v", devicePath: "/dev/x" }],
    },
    want: [],
  },
  {
    name: "two devices of no name",
    change: {
      "spec.containers[0].volumeDevices": [
        { name: "", devicePath: "/x" },
        { name: "", devicePath: "/y" },
      ],
    },
    want: [0, 1].flatMap((i) => [
      `spec.containers[0].volumeDevices[${i}].name: Required value`,
      `spec.containers[0].volumeDevices[${i}].name: Not found: ""`,
    ]),
  },
  {
    name: "a mount of a volume that is none",
    change: {
      "spec.volumes": [{ name: "v", hostPath: { path: "" } }],
      "spec.containers[0].volumeMounts": [{ name: "v", mountPath: "/x" }],
    },
    want: ["spec.volumes[0].hostPath.path: Required value", 'spec.containers[0].volumeMounts[0].name: Not found: "v"'],
  },
  {
    name: "a third init container of the second one's name",
    change: { "spec.initContainers": [init({}), init({ name: "b" }), init({ name: "b" })] },
    want: ['spec.initContainers[2].name: Duplicate value: "b"', 'spec.initContainers[2].name: Duplicate value: "b"'],
  },
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
    name: "deletion costs of minus nothing",
    change: { "metadata.annotations": { "controller.kubernetes.io/pod-deletion-cost": "-0" } },
    want: [],
  },
  ...["", "-", "00", "0x1", "1.0"].map((cost) => ({
    name: `a deletion cost of ${JSON.stringify(cost)}`,
    change: { "metadata.annotations": { "controller.kubernetes.io/pod-deletion-cost": cost } },
    want: [`metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "${cost}": must be a 32bit integer`],
  })),
]);

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
    name: "sysctls of 253 characters, with slashes, and with dots between slashes",
    change: sysctls("a".repeat(253), "net/ipv4/ip_forward", "net/ipv4/conf/eth0.1/x-y"),
    want: [],
  },
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
  {
    name: "other ports than those of the host, without a security context",
    undefaulted: true,
    change: {
      "spec.restartPolicy": "Always",
      "spec.dnsPolicy": "Default",
      "spec.hostNetwork": true,
      "spec.containers[0].terminationMessagePolicy": "File",
      "spec.containers[0].imagePullPolicy": "Always",
      "spec.containers[0].ports": [{ containerPort: 80, protocol: "TCP" }],
    },
    want: ["spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when `hostNetwork` is true"],
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
]);

const scheduling = "DuringSchedulingIgnoredDuringExecution";
const nodeTerms = (...matchExpressions: object[]): Record<string, unknown> => ({
  "spec.affinity": { nodeAffinity: { [`required${scheduling}`]: { nodeSelectorTerms: [{ matchExpressions }] } } },
});
const expressionsAt = `spec.affinity.nodeAffinity.required${scheduling}.nodeSelectorTerms[0].matchExpressions`;
const badTerm = { topologyKey: "" };
const keyErrors = (at: string): string[] => [
  `${at}.topologyKey: Required value: can not be empty`,
  `${at}.topologyKey: Invalid value: "": name part must be non-empty`,
  `${at}.topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
];

testKindRules("pods", small, [
  {
    name: "expressions for nodes with as many values as each operator takes",
    change: nodeTerms(
      { key: "a", operator: "In", values: ["1", "2"] },
      { key: "a", operator: "NotIn", values: ["1"] },
      { key: "a", operator: "Exists" },
      { key: "a", operator: "DoesNotExist", values: [] },
      { key: "a", operator: "Gt", values: ["1"] },
      { key: "a", operator: "Lt", values: ["1"] },
    ),
    want: [],
  },
  {
    name: "expressions for nodes with too few and too many values",
    change: nodeTerms(
      { key: "a", operator: "NotIn", values: [] },
      { key: "a", operator: "DoesNotExist", values: ["1"] },
      { key: "a", operator: "Gt" },
      { key: "a", operator: "Lt" },
      { key: "a", operator: "Lt", values: ["1", "2"] },
    ),
    want: [
      `${expressionsAt}[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
      `${expressionsAt}[1].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
      ...[2, 3, 4].map(
        (i) => `${expressionsAt}[${i}].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`,
      ),
    ],
  },
  {
    name: "all nodes but one, by name",
    change: {
      "spec.affinity": {
        nodeAffinity: {
          [`required${scheduling}`]: {
            nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["a"] }] }],
          },
        },
      },
    },
    want: [],
  },
  {
    name: "terms against pods, second ones, that are none",
    change: {
      "spec.affinity": {
        podAntiAffinity: {
          [`required${scheduling}`]: [{ topologyKey: "zone" }, badTerm],
          [`preferred${scheduling}`]: [
            { weight: 1, podAffinityTerm: { topologyKey: "zone" } },
            { weight: 100, podAffinityTerm: badTerm },
          ],
        },
      },
    },
    want: [
      ...keyErrors(`spec.affinity.podAntiAffinity.required${scheduling}[1]`),
      ...keyErrors(`spec.affinity.podAntiAffinity.preferred${scheduling}[1].podAffinityTerm`),
    ],
  },
  {
    name: "a topology key with both actions",
    change: {
      "spec.topologySpreadConstraints": ["DoNotSchedule", "ScheduleAnyway"].map((whenUnsatisfiable) => ({
        maxSkew: 1,
        topologyKey: "zone",
        whenUnsatisfiable,
      })),
    },
    want: [],
  },
  {
    name: "tolerations of everything, of each effect, and for a time",
    change: {
      "spec.tolerations": [
        { operator: "Exists" },
        { key: "a", value: "b", effect: "NoSchedule" },
        { key: "a", operator: "Equal", effect: "PreferNoSchedule" },
        { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 0 },
      ],
    },
    want: [],
  },
  {
    name: "a toleration for a time of every effect, and one without an operator of a wrong value",
    change: {
      "spec.tolerations": [{ key: "a", operator: "Exists", tolerationSeconds: 0 }, { key: "a", value: "b c" }, { value: "b" }],
    },
    want: [
      "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
      `spec.tolerations[1].operator: Invalid value: "b c": ${labelValueText}`,
      'spec.tolerations[2].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
  },
  {
    name: "a toleration of a pod that has its node",
    change: { "spec.nodeName": "n", "spec.tolerations": [{ key: "a", operator: "Gt" }] },
    want: ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"'],
  },
  {
    name: "an empty list of name servers with policy None",
    change: { "spec.dnsPolicy": "None", "spec.dnsConfig": { nameservers: [] } },
    want: ["spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"],
  },
  {
    name: "a host port of no port, which is none itself",
    change: { "spec.containers[0].ports": [{ containerPort: 0, hostPort: 65_536 }] },
    want: [
      "spec.containers[0].ports[0].containerPort: Required value",
      "spec.containers[0].ports[0].hostPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
    ],
  },
  {
    name: "each policy of a message, of an image, of a restart and of DNS",
    change: {
      "spec.restartPolicy": "OnFailure",
      "spec.dnsPolicy": "ClusterFirstWithHostNet",
      "spec.containers": ["Always", "IfNotPresent", "Never"].map((imagePullPolicy, i) => ({
        ...{ name: `c${i}`, image: "i", imagePullPolicy },
        terminationMessagePolicy: i === 0 ? "File" : "FallbackToLogsOnError",
      })),
    },
    want: [],
  },
  {
    name: "a variable with a value and from two sources, which is told of the value",
    change: {
      "spec.containers[0].env": [
        {
          ...{ name: "A", value: "x" },
          valueFrom: { secretKeyRef: { name: "s", key: "k" }, configMapKeyRef: { name: "m.n", key: "k.l" } },
        },
      ],
    },
    want: ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
  },
  {
    name: "variables with an empty value and one source each",
    change: {
      "spec.containers[0].env": [
        { name: "A", value: "", valueFrom: { secretKeyRef: { name: "s", key: "k", optional: true } } },
        { name: "B", valueFrom: { configMapKeyRef: { name: "m.n", key: "k.l" } } },
        { name: "C", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
        { name: "A" },
      ],
      "spec.containers[0].envFrom": [{ prefix: "A-", configMapRef: { name: "m.n" } }, { secretRef: { name: "s" } }],
    },
    want: [],
  },
  {
    name: "a mirror of an empty node",
    change: { "metadata.annotations": { "kubernetes.io/config.mirror": "x" }, "spec.nodeName": "" },
    want: [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
    ],
  },
  {
    name: "a field of nodes without values, and a spread of no skew",
    change: {
      "spec.affinity": {
        nodeAffinity: {
          [`required${scheduling}`]: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" }] }] },
        },
      },
      "spec.topologySpreadConstraints": [{ topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }],
    },
    want: [
      `spec.affinity.nodeAffinity.required${scheduling}.nodeSelectorTerms[0].matchFields[0].values: Required value: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector`,
      "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ],
  },
  {
    name: "tolerations of every key with a value, and of an unknown effect for a time",
    change: {
      "spec.tolerations": [
        { operator: "Exists", value: "x" },
        { key: "a", operator: "Exists", effect: "Never", tolerationSeconds: 1 },
      ],
    },
    want: [
      `spec.tolerations[0].operator: Invalid value: ${goStruct("core/v1.Toleration", { operator: "Exists", value: "x" }).text}: value must be empty when \`operator\` is 'Exists'`,
      "spec.tolerations[1].effect: Invalid value: \"Never\": effect must be 'NoExecute' when `tolerationSeconds` is set",
      'spec.tolerations[1].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
  },
  {
    name: "tolerations of the annotation of a pod that has its node, and an empty annotation of them",
    change: {
      "spec.nodeName": "n",
      "metadata.annotations": { "scheduler.alpha.kubernetes.io/tolerations": '[{"key":"a","operator":"Gt"}]' },
    },
    want: [
      'metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"',
    ],
  },
  {
    name: "an empty annotation of tolerations",
    change: { "metadata.annotations": { "scheduler.alpha.kubernetes.io/tolerations": "" } },
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
    name: "a fourth container of the third one's name",
    change: { "spec.containers": ["c", "d", "e", "e"].map((name) => ({ name, image: "i" })) },
    want: ['spec.containers[3].name: Duplicate value: "e"'],
  },
  {
    name: "a port of no protocol and a request of no scheme",
    undefaulted: true,
    change: {
      ...{ "spec.restartPolicy": "Always", "spec.dnsPolicy": "Default" },
      ...{ "spec.containers[0].terminationMessagePolicy": "File", "spec.containers[0].imagePullPolicy": "Always" },
      "spec.containers[0].ports": [{ containerPort: 80 }],
      "spec.containers[0].lifecycle": { postStart: { httpGet: { port: 80, path: "/" } } },
    },
    want: [
      'spec.containers[0].lifecycle.postStart.httpGet.scheme: Unsupported value: "": supported values: "HTTP", "HTTPS"',
      "spec.containers[0].ports[0].protocol: Required value",
    ],
  },
  {
    name: "mounts of no path twice, of two sub paths that lead outside, and of a device of no name",
    change: {
      "spec.volumes": [{ name: "v", emptyDir: {} }],
      "spec.containers[0].volumeMounts": [
        { name: "v", mountPath: "" },
        { name: "v", mountPath: "", subPath: "../a", subPathExpr: "/b" },
        { name: "", mountPath: "/x" },
      ],
      "spec.containers[0].volumeDevices": [{ name: "", devicePath: "" }],
    },
    want: [
      "spec.containers[0].volumeMounts[0].mountPath: Required value",
      'spec.containers[0].volumeMounts[0].mountPath: Invalid value: "": must not already exist as a path in volumeDevices',
      "spec.containers[0].volumeMounts[1].mountPath: Required value",
      'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "": must be unique',
      'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "": must not already exist as a path in volumeDevices',
      "spec.containers[0].volumeMounts.subPath: Invalid value: \"../a\": must not contain '..'",
      'spec.containers[0].volumeMounts[1].subPathExpr: Invalid value: "/b": subPathExpr and subPath are mutually exclusive',
      'spec.containers[0].volumeMounts.subPathExpr: Invalid value: "/b": must be a relative path',
      "spec.containers[0].volumeMounts[2].name: Required value",
      'spec.containers[0].volumeMounts[2].name: Not found: ""',
      'spec.containers[0].volumeMounts[2].name: Invalid value: "": must not already exist in volumeDevices',
      "spec.containers[0].volumeDevices[0].name: Required value",
      'spec.containers[0].volumeDevices[0].name: Not found: ""',
      "spec.containers[0].volumeDevices[0].devicePath: Required value",
      'spec.containers[0].volumeDevices[0].name: Invalid value: "": must not already exist in volumeMounts',
      'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "": must not already exist as a path in volumeMounts',
    ],
  },
  {
    name: "no huge pages, and neither privilege nor escalation",
    change: {
      "spec.containers[0].resources": { limits: { "hugepages-2Mi": "0", cpu: "0" } },
      "spec.containers[0].securityContext": {
        ...{ privileged: false, allowPrivilegeEscalation: false, runAsUser: 0, procMount: "Default" },
        ...{ seccompProfile: { type: "Localhost", localhostProfile: "a/..b" }, capabilities: { add: ["SYS_TIME"] } },
      },
    },
    want: [],
  },
  {
    name: "a resource with a dot and an amount that is shown in its shortest form",
    change: { "spec.containers[0].resources": { requests: { "a.b": "1", cpu: "-1000m" } } },
    want: [
      'spec.containers[0].resources.requests[a.b]: Invalid value: "a.b": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.requests[a.b]: Invalid value: "a.b": must be a standard resource for containers',
      'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ],
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
  { name: "a domain of 255 characters", change: windows(`${domainOf(255)}\\u`), want: [] },
  {
    name: "a domain of 256 characters",
    change: windows(`${domainOf(256)}\\u`),
    want: [`${windowsAt}: Invalid value: "${domainOf(256)}\\\\u": runAsUserName's Domain length must be under 256 characters`],
  },
]);
