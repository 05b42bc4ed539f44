/** Values of containers that are just taken, and those next to them that are refused. */
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { testKindRules } from "../../../../testing/kind-rules.ts";

const small = { spec: { containers: [{ name: "c", image: "i" }] } };
const init = (more: object): object => ({ name: "a", image: "i", ...more });
const tcp = { tcpSocket: { port: 1 } };
const tcpProbe = { ...tcp, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

testKindRules("pods", small, [
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
  {
    name: "a host port of no port, which is none itself",
    change: { "spec.containers[0].ports": [{ containerPort: 0, hostPort: 65_536 }] },
    want: [
      "spec.containers[0].ports[0].containerPort: Required value",
      "spec.containers[0].ports[0].hostPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
    ],
  },
  {
    name: "a host port and a port below none",
    change: { "spec.containers[0].ports": [{ containerPort: -1, hostPort: -1 }] },
    want: ["containerPort", "hostPort"].map(
      (field) => `spec.containers[0].ports[0].${field}: Invalid value: -1: must be between 1 and 65535, inclusive`,
    ),
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
]);
