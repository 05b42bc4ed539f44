import { testKindRules } from "../../../../testing/kind-rules.ts";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  { name: "a small pod", change: {}, want: [] },
  {
    name: "a container without image and name",
    change: { "spec.containers[0]": { name: "" } },
    want: ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
  },
  { name: "no containers", change: { "spec.containers": [] }, want: ["spec.containers: Required value"] },
  {
    name: "two containers of one name",
    change: { "spec.containers[1]": { name: "c", image: "i" } },
    want: ['spec.containers[1].name: Duplicate value: "c"'],
  },
  {
    name: "an init container of a container's name",
    change: { "spec.initContainers": [{ name: "c", image: "i" }] },
    want: ['spec.initContainers[0].name: Duplicate value: "c"'],
  },
  {
    name: "a probe and a hook of an init container",
    change: {
      "spec.initContainers": [
        {
          name: "d",
          image: "i",
          readinessProbe: { exec: { command: ["x"] } },
          lifecycle: { preStop: { exec: { command: ["x"] } } },
        },
      ],
    },
    want: [
      "spec.initContainers[0].lifecycle: Invalid value: core.Lifecycle{PostStart:(*core.LifecycleHandler)(nil), PreStop:(*core.LifecycleHandler)(0xc000000000)}: must not be set for init containers",
      "spec.initContainers[0].readinessProbe: Invalid value: core.Probe{ProbeHandler:core.ProbeHandler{Exec:(*core.ExecAction)(0xc000000000), HTTPGet:(*core.HTTPGetAction)(nil), TCPSocket:(*core.TCPSocketAction)(nil), GRPC:(*core.GRPCAction)(nil)}, InitialDelaySeconds:0, TimeoutSeconds:1, PeriodSeconds:10, SuccessThreshold:1, FailureThreshold:3, TerminationGracePeriodSeconds:(*int64)(nil)}: must not be set for init containers",
    ],
  },
  {
    name: "an image of spaces around",
    change: { "spec.containers[0].image": " i" },
    want: ['spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace'],
  },
  {
    name: "an unknown pull policy",
    change: { "spec.containers[0].imagePullPolicy": "Sometimes" },
    want: [
      'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
    ],
  },
  {
    name: "an unknown termination message policy",
    change: { "spec.containers[0].terminationMessagePolicy": "Log" },
    want: ["spec.containers[0].terminationMessagePolicy: Invalid value: \"Log\": must be 'File' or 'FallbackToLogsOnError'"],
  },
  {
    name: "ports out of range, unnamed protocol and doubled names",
    change: {
      "spec.containers[0].ports": [
        { containerPort: 0 },
        { containerPort: 80, name: "a", protocol: "HTTP" },
        { containerPort: 81, name: "a", hostPort: 70000 },
      ],
    },
    want: [
      "spec.containers[0].ports[0].containerPort: Required value",
      'spec.containers[0].ports[1].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
      'spec.containers[0].ports[2].name: Duplicate value: "a"',
      "spec.containers[0].ports[2].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ],
  },
  {
    name: "a host port twice",
    change: {
      "spec.containers[0].ports": [
        { containerPort: 80, hostPort: 80 },
        { containerPort: 81, hostPort: 80 },
      ],
    },
    want: ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"'],
  },
  {
    name: "a host port that differs on the host's network",
    change: { "spec.hostNetwork": true, "spec.containers[0].ports": [{ containerPort: 80, hostPort: 81 }] },
    want: ["spec.containers[0].ports[0].containerPort: Invalid value: 80: must match `hostPort` when `hostNetwork` is true"],
  },
  {
    name: "environment of bad names and sources",
    change: {
      "spec.containers[0].env": [
        { name: "" },
        { name: "1=" },
        { name: "A", value: "x", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "B", valueFrom: {} },
        { name: "C", valueFrom: { fieldRef: { fieldPath: "spec.nowhere" } } },
        { name: "D", valueFrom: { secretKeyRef: { name: "", key: "" } } },
        { name: "E", valueFrom: { configMapKeyRef: { name: "a", key: "/" } } },
        { name: "F", valueFrom: { resourceFieldRef: { resource: "limits.gpu" } } },
      ],
    },
    want: [
      "spec.containers[0].env[0].name: Required value",
      "spec.containers[0].env[1].name: Invalid value: \"1=\": a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
      'spec.containers[0].env[2].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
      'spec.containers[0].env[3].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
      'spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Invalid value: "spec.nowhere": error converting fieldPath: field label not supported: spec.nowhere',
      "spec.containers[0].env[5].valueFrom.secretKeyRef.name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.containers[0].env[5].valueFrom.secretKeyRef.key: Required value",
      "spec.containers[0].env[6].valueFrom.configMapKeyRef.key: Invalid value: \"/\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      'spec.containers[0].env[7].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
    ],
  },
  {
    name: "environment from nothing and from two",
    change: {
      "spec.containers[0].envFrom": [
        {},
        { prefix: "1=", configMapRef: { name: "a" } },
        { configMapRef: { name: "a" }, secretRef: { name: "b" } },
        { secretRef: { name: "" } },
      ],
    },
    want: [
      'spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
      "spec.containers[0].envFrom[1].prefix: Invalid value: \"1=\": a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
      'spec.containers[0].envFrom: Invalid value: "": may not have more than one field specified at a time',
      "spec.containers[0].envFrom[3].secretRef.name: Required value",
    ],
  },
  {
    name: "mounts of nothing",
    change: {
      "spec.containers[0].volumeMounts": [
        { name: "", mountPath: "" },
        { name: "v", mountPath: "/x" },
      ],
    },
    want: [
      "spec.containers[0].volumeMounts[0].name: Required value",
      'spec.containers[0].volumeMounts[0].name: Not found: ""',
      "spec.containers[0].volumeMounts[0].mountPath: Required value",
      'spec.containers[0].volumeMounts[1].name: Not found: "v"',
    ],
  },
  {
    name: "mounts at one path, climbing, with two sub paths",
    change: {
      "spec.volumes": [{ name: "v", emptyDir: {} }],
      "spec.containers[0].volumeMounts": [
        { name: "v", mountPath: "/x", subPath: "../a" },
        { name: "v", mountPath: "/x", subPath: "a", subPathExpr: "b" },
        { name: "v", mountPath: "/y", mountPropagation: "Sideways" },
      ],
    },
    want: [
      "spec.containers[0].volumeMounts.subPath: Invalid value: \"../a\": must not contain '..'",
      'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique',
      'spec.containers[0].volumeMounts[1].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive',
      'spec.containers[0].volumeMounts.mountPropagation: Unsupported value: "Sideways": supported values: "Bidirectional", "HostToContainer", "None"',
    ],
  },
  {
    name: "two ways propagation without privilege",
    change: {
      "spec.volumes": [{ name: "v", emptyDir: {} }],
      "spec.containers[0].volumeMounts": [{ name: "v", mountPath: "/x", mountPropagation: "Bidirectional" }],
    },
    want: [
      "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
    ],
  },
  {
    name: "devices that are no claims",
    change: {
      "spec.volumes": [{ name: "v", emptyDir: {} }],
      "spec.containers[0].volumeDevices": [
        { name: "v", devicePath: "/dev/x" },
        { name: "w", devicePath: "../x" },
      ],
    },
    want: [
      'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      'spec.containers[0].volumeDevices[1].name: Not found: "w"',
      "spec.containers[0].volumeDevices[1].devicePath: Invalid value: \"../x\": can not contain backsteps ('..')",
    ],
  },
  {
    name: "two volumes of one name",
    change: {
      "spec.volumes": [
        { name: "v", emptyDir: {} },
        { name: "v", emptyDir: {} },
      ],
    },
    want: ['spec.volumes[1].name: Duplicate value: "v"'],
  },
  {
    name: "requests beyond limits",
    change: { "spec.containers[0].resources": { limits: { cpu: "1" }, requests: { cpu: "2" } } },
    want: ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit'],
  },
  {
    name: "amounts that are negative, unknown or fractions",
    change: {
      "spec.containers[0].resources": {
        requests: { cpu: "-1", gpu: "1", "kubernetes.io/x": "1" },
        limits: { "a.com/gpu": "1500m" },
      },
    },
    want: [
      'spec.containers[0].resources.limits[a.com/gpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:1500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"1500m", Format:"DecimalSI"}: must be an integer',
      'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
      'spec.containers[0].resources.requests[a.com/gpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:1500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"1500m", Format:"DecimalSI"}: must be an integer',
    ],
  },
  {
    name: "an extended resource without limit",
    change: { "spec.containers[0].resources": { requests: { "a.com/gpu": "1" } } },
    want: ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
  },
  {
    name: "an extended resource of two amounts",
    change: { "spec.containers[0].resources": { requests: { "a.com/gpu": "1" }, limits: { "a.com/gpu": "2" } } },
    want: ['spec.containers[0].resources.requests: Invalid value: "1": must be equal to a.com/gpu limit'],
  },
  {
    name: "huge pages alone",
    change: { "spec.containers[0].resources": { limits: { "hugepages-2Mi": "2Mi" } } },
    want: ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
  },
  {
    name: "huge pages that are no multiple",
    change: { "spec.containers[0].resources": { limits: { "hugepages-2Mi": "3Mi", cpu: "1" } } },
    want: [
      'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
      'spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
    ],
  },
  {
    name: "a probe of nothing",
    change: { "spec.containers[0].livenessProbe": {} },
    want: ["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
  },
  {
    name: "a probe of two ways",
    change: { "spec.containers[0].livenessProbe": { exec: { command: ["x"] }, tcpSocket: { port: 1 } } },
    want: ["spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
  },
  {
    name: "numbers of a probe",
    change: {
      "spec.containers[0].livenessProbe": {
        exec: { command: [] },
        initialDelaySeconds: -1,
        timeoutSeconds: -1,
        periodSeconds: -1,
        successThreshold: 2,
        failureThreshold: -1,
        terminationGracePeriodSeconds: 0,
      },
    },
    want: [
      "spec.containers[0].livenessProbe.exec.command: Required value",
      "spec.containers[0].livenessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0",
      "spec.containers[0].livenessProbe.timeoutSeconds: Invalid value: -1: must be greater than or equal to 0",
      "spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
      "spec.containers[0].livenessProbe.failureThreshold: Invalid value: -1: must be greater than or equal to 0",
      "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
    ],
  },
  {
    name: "a readiness probe with a grace period",
    change: { "spec.containers[0].readinessProbe": { tcpSocket: { port: "http_x" }, terminationGracePeriodSeconds: 5 } },
    want: [
      "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes",
      'spec.containers[0].readinessProbe.tcpSocket.port: Invalid value: "http_x": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
    ],
  },
  {
    name: "HTTP without path, of a wrong port, scheme and header",
    change: {
      "spec.containers[0].livenessProbe": {
        httpGet: { path: "", port: 0, scheme: "FTP", httpHeaders: [{ name: "a b", value: "x" }] },
      },
    },
    want: [
      "spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
      'spec.containers[0].livenessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
      "spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
    ],
  },
  {
    name: "a start hook of nothing, a stop hook of two",
    change: {
      "spec.containers[0].lifecycle": { postStart: {}, preStop: { exec: { command: ["a"] }, httpGet: { path: "/", port: 1 } } },
    },
    want: [
      "spec.containers[0].lifecycle.postStart: Required value: must specify a handler type",
      "spec.containers[0].lifecycle.preStop.httpGet: Forbidden: may not specify more than 1 handler type",
    ],
  },
  {
    name: "a name of devices in mounts, and a path",
    change: {
      "spec.volumes": [{ name: "v", persistentVolumeClaim: { claimName: "a" } }],
      "spec.containers[0].volumeMounts": [{ name: "v", mountPath: "/x" }],
      "spec.containers[0].volumeDevices": [{ name: "v", devicePath: "/x" }],
    },
    want: [
      'spec.containers[0].volumeMounts[0].name: Invalid value: "v": must not already exist in volumeDevices',
      'spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/x": must not already exist as a path in volumeDevices',
      'spec.containers[0].volumeDevices[0].name: Invalid value: "v": must not already exist in volumeMounts',
      'spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/x": must not already exist as a path in volumeMounts',
    ],
  },
  {
    name: "devices twice, and of no name",
    change: {
      "spec.volumes": [{ name: "v", persistentVolumeClaim: { claimName: "a" } }],
      "spec.containers[0].volumeDevices": [
        { name: "v", devicePath: "/x" },
        { name: "v", devicePath: "/x" },
        { name: "", devicePath: "/y" },
      ],
    },
    want: [
      'spec.containers[0].volumeDevices[1].name: Invalid value: "v": must be unique',
      'spec.containers[0].volumeDevices[1].devicePath: Invalid value: "/x": must be unique',
      "spec.containers[0].volumeDevices[2].name: Required value",
      'spec.containers[0].volumeDevices[2].name: Not found: ""',
    ],
  },
  {
    name: "a name that is no label",
    change: { "spec.containers[0].name": "a.b" },
    want: [
      "spec.containers[0].name: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  },
  {
    name: "environment of two sources",
    change: {
      "spec.containers[0].env": [
        { name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name" }, secretKeyRef: { name: "a", key: "b" } } },
      ],
    },
    want: ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'],
  },
  {
    name: "fields of no version, no path, another version, keys and no keys",
    change: {
      "spec.containers[0].env": [
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "" } } },
        { name: "B", valueFrom: { fieldRef: { apiVersion: "v2", fieldPath: "metadata.name" } } },
        { name: "C", valueFrom: { fieldRef: { fieldPath: "metadata.annotations['a b']" } } },
        { name: "D", valueFrom: { fieldRef: { fieldPath: "metadata.labels['a b']" } } },
        { name: "E", valueFrom: { fieldRef: { fieldPath: "metadata.name['a']" } } },
      ],
    },
    want: [
      "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Required value",
      'spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2',
      "spec.containers[0].env[2].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.containers[0].env[3].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']",
    ],
  },
  {
    name: "a probe over gRPC at no port, and no time to end",
    gates: { GRPCContainerProbe: true, ProbeTerminationGracePeriod: true },
    change: {
      "spec.containers[0].livenessProbe": { grpc: { port: 0 }, terminationGracePeriodSeconds: 0 },
      "spec.containers[0].readinessProbe": { exec: { command: ["x"] }, terminationGracePeriodSeconds: 5 },
    },
    want: [
      "spec.containers[0].livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive",
      "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
      "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes",
    ],
  },
  {
    name: "an extended resource of a strange name",
    change: { "spec.containers[0].resources.limits": { "requests.a.com/x": "1" } },
    want: [
      'spec.containers[0].resources.limits[requests.a.com/x]: Invalid value: "requests.a.com/x": doesn\'t follow extended resource name standard',
      'spec.containers[0].resources.requests[requests.a.com/x]: Invalid value: "requests.a.com/x": doesn\'t follow extended resource name standard',
    ],
  },
  {
    name: "a startup probe of nothing, that needs more than one success",
    change: {
      "spec.containers[0].startupProbe": { successThreshold: 2, timeoutSeconds: 1, periodSeconds: 1, failureThreshold: 1 },
    },
    want: [
      "spec.containers[0].startupProbe: Required value: must specify a handler type",
      "spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1",
    ],
  },
  {
    name: "init containers that use a port twice, each",
    change: {
      "spec.initContainers": [
        {
          name: "a",
          image: "i",
          ports: [
            { containerPort: 1, hostPort: 1 },
            { containerPort: 2, hostPort: 1 },
          ],
        },
      ],
    },
    want: ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//1"'],
  },
  {
    name: "an init container of spaces",
    change: { "spec.initContainers": [{ name: "a", image: " i" }] },
    want: ['spec.initContainers[0].image: Invalid value: " i": must not have leading or trailing whitespace'],
  },
  {
    name: "a message of no policy",
    undefaulted: true,
    change: { "spec.restartPolicy": "Always", "spec.dnsPolicy": "Default", "spec.containers[0].imagePullPolicy": "Always" },
    want: ["spec.containers[0].terminationMessagePolicy: Required value: must be 'File' or 'FallbackToLogsOnError'"],
  },
  {
    name: "a port that is none, by a name that is none",
    change: { "spec.containers[0].ports": [{ containerPort: 70000, name: "a_b" }] },
    want: [
      'spec.containers[0].ports[0].name: Invalid value: "a_b": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ],
  },
  {
    name: "references of nothing",
    undefaulted: true,
    change: {
      "spec.restartPolicy": "Always",
      "spec.dnsPolicy": "Default",
      "spec.containers[0].terminationMessagePolicy": "File",
      "spec.containers[0].imagePullPolicy": "Always",
      "spec.containers[0].env": [
        { name: "A", valueFrom: { fieldRef: { apiVersion: "", fieldPath: "" } } },
        { name: "B", valueFrom: { resourceFieldRef: { resource: "" } } },
      ],
    },
    want: [
      "spec.containers[0].env[0].valueFrom.fieldRef.apiVersion: Required value",
      "spec.containers[0].env[1].valueFrom.resourceFieldRef.resource: Required value",
    ],
  },
  {
    name: "a path out of its volume, a device of no path",
    change: {
      "spec.volumes": [{ name: "v", emptyDir: {} }],
      "spec.containers[0].volumeMounts": [{ name: "v", mountPath: "/v", subPathExpr: "../a" }],
      "spec.containers[0].volumeDevices": [{ name: "v", devicePath: "" }],
    },
    want: [
      'spec.containers[0].volumeMounts[0].name: Invalid value: "v": must not already exist in volumeDevices',
      "spec.containers[0].volumeMounts.subPathExpr: Invalid value: \"../a\": must not contain '..'",
      'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      "spec.containers[0].volumeDevices[0].devicePath: Required value",
      'spec.containers[0].volumeDevices[0].name: Invalid value: "v": must not already exist in volumeMounts',
    ],
  },
  {
    name: "a request of no path",
    undefaulted: true,
    change: {
      "spec.restartPolicy": "Always",
      "spec.dnsPolicy": "Default",
      "spec.containers[0].terminationMessagePolicy": "File",
      "spec.containers[0].imagePullPolicy": "Always",
      "spec.containers[0].lifecycle": { preStop: { httpGet: { port: 80, scheme: "HTTP" } } },
    },
    want: ["spec.containers[0].lifecycle.preStop.httpGet.path: Required value"],
  },
  {
    name: "a group and a view of /proc that are none",
    change: { "spec.containers[0].securityContext": { runAsGroup: -1, procMount: "Some" } },
    gates: { ProcMountType: true },
    want: [
      "spec.containers[0].securityContext.runAsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      'spec.containers[0].securityContext.procMount: Unsupported value: "Some": supported values: "Default", "Unmasked"',
    ],
  },
  {
    name: "an environment from what has no name",
    change: { "spec.containers[0].envFrom": [{ secretRef: { name: "a b" } }] },
    want: [
      "spec.containers[0].envFrom[0].secretRef.name: Invalid value: \"a b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
]);
