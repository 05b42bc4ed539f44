import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { defaultPod } from "../defaults.ts";
import { podValidationOptions } from "./options.ts";
import { validatePod } from "./pod.ts";

const gates = new Set(["DownwardAPIHugePages", "PodDeletionCost", "WindowsHostProcessContainers", "IdentifyPodOS"]);
const options = podValidationOptions((gate) => gates.has(gate), undefined, false);

function errorsOf(spec: object, metadata: object = {}): string[] {
  const pod = {
    metadata: { name: "p", namespace: "default", ...metadata },
    spec: { containers: [{ name: "c", image: "x" }], ...spec },
  } as Pod;
  defaultPod(pod);
  return atOnce(validatePod(pod, options)).map(formatFieldError);
}

const withContainer = (container: object): object => ({ containers: [{ name: "c", image: "x", ...container }] });
const half =
  'resource.Quantity{i:resource.int64Amount{value:500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"500m", Format:"DecimalSI"}';
const withVolume = (volume: object): object => ({ volumes: [{ name: "v", ...volume }] });

test("a smallest pod is valid", () => assert.deepEqual(errorsOf({}), []));

for (const { name, spec, want } of [
  { name: "no containers", spec: { containers: [] }, want: ["spec.containers: Required value"] },
  {
    name: "two containers of one name",
    spec: {
      containers: [
        { name: "c", image: "x" },
        { name: "c", image: "x" },
      ],
    },
    want: ['spec.containers[1].name: Duplicate value: "c"'],
  },
  { name: "no image", spec: withContainer({ image: "" }), want: ["spec.containers[0].image: Required value"] },
  {
    name: "an image with spaces",
    spec: withContainer({ image: " x" }),
    want: ['spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace'],
  },
  {
    name: "an unknown pull policy",
    spec: withContainer({ imagePullPolicy: "Often" }),
    want: ['spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"'],
  },
  {
    name: "a mount of no volume",
    spec: withContainer({ volumeMounts: [{ name: "v", mountPath: "/v" }] }),
    want: ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
  },
  {
    name: "a request above its limit",
    spec: withContainer({ resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } }),
    want: ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit'],
  },
  {
    name: "an unknown resource",
    spec: withContainer({ resources: { requests: { gold: "2" } } }),
    want: [
      'spec.containers[0].resources.requests[gold]: Invalid value: "gold": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.requests[gold]: Invalid value: "gold": must be a standard resource for containers',
    ],
  },
  {
    name: "part of an extended resource",
    spec: withContainer({ resources: { requests: { "example.com/gpu": "500m" }, limits: { "example.com/gpu": "500m" } } }),
    want: [
      `spec.containers[0].resources.limits[example.com/gpu]: Invalid value: ${half}: must be an integer`,
      `spec.containers[0].resources.requests[example.com/gpu]: Invalid value: ${half}: must be an integer`,
    ],
  },
  {
    name: "a privileged container where none may be",
    spec: withContainer({ securityContext: { privileged: true } }),
    want: ["spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"],
  },
  {
    name: "a probe without and with two handlers",
    spec: withContainer({ livenessProbe: {}, readinessProbe: { exec: { command: ["x"] }, tcpSocket: { port: 1 } } }),
    want: [
      "spec.containers[0].livenessProbe: Required value: must specify a handler type",
      "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
    ],
  },
  {
    name: "a liveness probe that must pass twice",
    spec: withContainer({ livenessProbe: { exec: { command: ["x"] }, successThreshold: 2 } }),
    want: ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"],
  },
  {
    name: "an environment variable from nowhere",
    spec: withContainer({ env: [{ name: "A", valueFrom: {} }] }),
    want: [
      'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
    ],
  },
  {
    name: "a field that is no field",
    spec: withContainer({ env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "spec.color" } } }] }),
    want: [
      'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.color": error converting fieldPath: field label not supported: spec.color',
    ],
  },
  {
    name: "two kinds of one volume",
    spec: withVolume({ emptyDir: {}, hostPath: { path: "/x" } }),
    want: ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
  },
  {
    name: "a host path that climbs",
    spec: withVolume({ hostPath: { path: "/a/../b" } }),
    want: ["spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"],
  },
  {
    name: "a toleration for everything that is not Exists",
    spec: { tolerations: [{ operator: "Equal", value: "x" }] },
    want: [
      'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
  },
  {
    name: "spreading by nothing",
    spec: { topologySpreadConstraints: [{ maxSkew: 0, topologyKey: "", whenUnsatisfiable: "Maybe" }] },
    want: [
      "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
      "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
      'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"',
    ],
  },
  {
    name: "node affinity without terms",
    spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    want: [
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
    ],
  },
  {
    name: "own DNS without servers",
    spec: { dnsPolicy: "None" },
    want: ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
  },
  {
    name: "a host alias that is no address",
    spec: { hostAliases: [{ ip: "1.2" }] },
    want: ['spec.hostAliases.ip: Invalid value: "1.2": must be valid IP address'],
  },
  {
    name: "ephemeral containers at creation",
    spec: { ephemeralContainers: [{ name: "e", image: "x" }] },
    want: ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
  },
  {
    name: "two host ports of one number",
    spec: withContainer({
      ports: [
        { containerPort: 1, hostPort: 8 },
        { containerPort: 2, hostPort: 8 },
      ],
    }),
    want: ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//8"'],
  },
  {
    name: "huge pages alone",
    spec: withContainer({ resources: { requests: { "hugepages-2Mi": "2Mi" }, limits: { "hugepages-2Mi": "2Mi" } } }),
    want: ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
  },
] as { name: string; spec: object; want: string[] }[]) {
  test(`refuses ${name}`, () => {
    assert.deepEqual(errorsOf(spec), want);
  });
}
