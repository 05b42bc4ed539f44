import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { conditionOfType, earlier, eventAbout, later, ownedBy, stored, testExplanations } from "../testing.ts";

const recent = "2026-03-01T11:59:55Z";
const aPod = (status: object, spec: object = {}, metadata: object = {}): Unstructured =>
  stored("v1", "Pod", "p", { metadata, spec: { containers: [{ name: "main", image: "img" }], ...spec }, status });
const aNode = (name: string, spec: object = {}, allocatable: object = {}): Unstructured =>
  stored("v1", "Node", name, { spec, status: { allocatable, ...conditionOfType("Ready", "True", "X") } });
const about = (reason: string, message: string, time?: string) => eventAbout("Pod", "p", reason, message, time);
/** An event about one container, `containers{main}`. */
const aboutContainer = (field: string, reason: string, message: string, time?: string): ReturnType<typeof about> => {
  const { involvedObject, ...event } = about(reason, message, time);
  return { ...event, involvedObject: { ...involvedObject, fieldPath: `spec.${field}` } };
};
const refusedBy = (message: string): object => ({
  phase: "Pending",
  ...conditionOfType("PodScheduled", "False", "Unschedulable", message),
});
const pod = ["pod/p"];

/** Refusals of the scheduler, and the words for them. */
for (const [text, reason, says, spec] of [
  ["2 Too many pods", "TooManyPods", /^2 nodes already hold as many pods as allowed$/],
  ["1 Too many pods", "TooManyPods", /^1 node already holds/],
  [
    "1 node(s) didn't match Pod's node affinity/selector",
    "NodeSelectorMatchesNone",
    /^node selector a=b matches none of 1 node$/,
    { nodeSelector: { a: "b" } },
  ],
  [
    "2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }",
    "NodeNotReady",
    /^2 nodes are not ready \(taint node.kubernetes.io\/not-ready\)$/,
  ],
  [
    "1 node(s) had taint {node.kubernetes.io/disk-pressure: }, that the pod didn't tolerate",
    "NodeUnderPressure",
    /^1 node is under pressure/,
  ],
  ["1 node(s) had taint {a: b}, that the pod didn't tolerate", "TaintNotTolerated", /^taint a=b of 1 node is not tolerated/],
  ["1 node(s) had taint {a: }, that the pod didn't tolerate", "TaintNotTolerated", /^taint a of 1 node/],
  [
    "1 node(s) didn't have free ports for the requested pod ports",
    "HostPortTaken",
    /^host port 80, 81 is taken on 1 node$/,
    {
      containers: [
        { name: "a", ports: [{ hostPort: 80 }] },
        { name: "b", ports: [{ containerPort: 1 }, { hostPort: 81 }] },
      ],
    },
  ],
  ["1 node(s) didn't match pod anti-affinity rules", "PodAntiAffinity", /^pod anti-affinity: 1 node already runs/],
  ["2 node(s) didn't satisfy existing pods anti-affinity rules", "PodAntiAffinity", /2 nodes already run a pod/],
  ["1 node(s) didn't match pod affinity rules", "PodAffinity", /none of 1 node runs/],
  [
    "1 node(s) didn't match pod topology spread constraints (missing required label)",
    "TopologySpread",
    /forbid 1 node \(missing required label\)$/,
  ],
  ["1 node(s) didn't match pod topology spread constraints", "TopologySpread", /forbid 1 node$/],
  ["1 node(s) had volume node affinity conflict", "VolumeOnOtherNode", /bound to other nodes than 1 node/],
  ["1 node(s) didn't find available persistent volumes to bind", "NoVolumeToBind", /reachable from 1 node$/],
  ["1 node(s) did not have enough free storage", "NotEnoughStorage", /on 1 node for its claim$/],
  ["1 something else", "Unschedulable", /^0\/9 nodes are available: 1 something else\.$/],
] as [string, string, RegExp, object?][]) {
  testExplanations([
    {
      name: `a pod that the scheduler refuses for ${JSON.stringify(text)}`,
      objects: [aPod(refusedBy(`0/9 nodes are available: ${text}.`), spec)],
      chain: pod,
      ...{ reason, says },
    },
  ]);
}

testExplanations([
  {
    name: "a pod in a cluster without nodes",
    objects: [aPod(refusedBy("0/0 nodes are available"))],
    chain: pod,
    reason: "NoNodes",
  },
  {
    name: "a required node affinity is written out beside the selector",
    objects: [
      aPod(refusedBy("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."), {
        nodeSelector: { a: "b" },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                {
                  matchExpressions: [{ key: "k", operator: "In", values: ["1", "2"] }],
                  matchFields: [{ key: "f", operator: "Exists" }],
                },
                { matchExpressions: [{ key: "l", operator: "Exists" }] },
              ],
            },
          },
        },
      }),
    ],
    chain: pod,
    says: /^node selector a=b with required node affinity \(k In 1,2 and f Exists or l Exists\) matches none/,
  },
  {
    name: "a required node affinity alone",
    objects: [
      aPod(refusedBy("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."), {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: "k", operator: "Exists" }] }],
            },
          },
        },
      }),
    ],
    chain: pod,
    says: /^required node affinity \(k Exists\) matches none of 1 node$/,
  },
  {
    name: "a refusal in other words is repeated",
    objects: [aPod(refusedBy("running PreBind plugin: timed out\n waiting"))],
    chain: pod,
    reason: "Unschedulable",
    says: /^running PreBind plugin: timed out waiting$/,
  },
  {
    name: "a cluster without nodes, in the words of an older scheduler",
    objects: [aPod(refusedBy("no nodes available to schedule pods"))],
    chain: pod,
    reason: "NoNodes",
  },
  ...(["not-ready", "unreachable", "memory-pressure", "network-unavailable"] as const).map((taint) => ({
    name: `of the nodes only one with the taint ${taint} is followed`,
    objects: [
      aPod(refusedBy(`0/2 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/${taint}: }.`)),
      stored("v1", "Node", "n1", { spec: {}, status: conditionOfType("Ready", "False", "X") }),
      stored("v1", "Node", "n2", {
        spec: { taints: [{ key: "a" }, { key: `node.kubernetes.io/${taint}` }] },
        status: conditionOfType("Ready", "False", "Y"),
      }),
    ],
    chain: ["pod/p", "node/n2"],
    reason: "Y",
  })),
  {
    name: "both claims that a pod waits for are named, the one that is bound is not",
    objects: [
      aPod(refusedBy("pod has unbound immediate PersistentVolumeClaims"), {
        volumes: ["a", "b", "c"].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
      }),
      ...["a", "b", "c"].map((name) =>
        stored("v1", "PersistentVolumeClaim", name, { spec: {}, status: { phase: name === "b" ? "Bound" : "Pending" } }),
      ),
    ],
    chain: ["pod/p", "persistentvolumeclaim/a"],
  },
  {
    name: "the largest node is named for a pod that is too large",
    objects: [
      aPod(refusedBy("0/2 nodes are available: 2 Insufficient cpu."), {
        containers: [{ name: "a", resources: { requests: { cpu: "9" } } }],
      }),
      aNode("n1", {}, { cpu: "2" }),
      aNode("n2", {}, { cpu: "4" }),
    ],
    chain: pod,
    says: /^not enough cpu on 2 nodes: it requests 9; the largest node has 4 in all, for all pods$/,
  },
  {
    name: "of the nodes only a cordoned one is followed",
    objects: [
      aPod(refusedBy("0/2 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: none.")),
      stored("v1", "Node", "n1", { spec: {}, status: conditionOfType("Ready", "False", "X") }),
      aNode("n2", { unschedulable: true }),
    ],
    chain: ["pod/p", "node/n2"],
    reason: "NodeCordoned",
  },
  {
    name: "a pod that a scheduler has 10 seconds to look at is not scheduled yet",
    objects: [aPod({ phase: "Pending" }, {}, { creationTimestamp: recent })],
    chain: pod,
    reason: "NotScheduledYet",
  },
  {
    name: "a claim that is being deleted keeps its pod from a node",
    objects: [
      aPod({ phase: "Pending" }, { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] }),
      stored("v1", "PersistentVolumeClaim", "c", {
        metadata: { deletionTimestamp: later },
        spec: {},
        status: { phase: "Bound" },
      }),
    ],
    chain: pod,
    reason: "ClaimBeingDeleted",
  },
  {
    name: "the claim of an ephemeral volume is that of its pod",
    objects: [aPod({ phase: "Pending" }, { volumes: [{ name: "v", ephemeral: {} }] })],
    chain: pod,
    reason: "ClaimMissing",
    says: /claim p-v does not exist/,
  },
  {
    name: "an unbound claim is not the cause when the scheduler names another one",
    objects: [
      aPod(refusedBy("0/1 nodes are available: 1 Insufficient cpu."), {
        volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }],
      }),
      stored("v1", "PersistentVolumeClaim", "c", { spec: {}, status: { phase: "Pending" } }),
    ],
    chain: pod,
    reason: "InsufficientResources",
  },
]);

const onNode = { nodeName: "n1" };
const good = aNode("n1");
const withContainer = (state: object, more: object = {}, phase = "Running"): object => ({
  phase,
  startTime: earlier,
  ...conditionOfType("Ready", "False", "ContainersNotReady"),
  containerStatuses: [{ name: "main", image: "img", ready: false, restartCount: 0, state, ...more }],
});
const waiting = (reason: string, message?: string): object => ({ waiting: { reason, ...(message && { message }) } });
const ended = (exitCode: number, reason = "", message?: string): object => ({
  terminated: { exitCode, reason, finishedAt: later, ...(message && { message }) },
});
const crashing = (last: object, more: object = {}): object =>
  withContainer(waiting("CrashLoopBackOff"), { lastState: last, restartCount: 2, ...more });

testExplanations(
  [
    {
      name: "an invalid image name",
      status: withContainer(waiting("InvalidImageName")),
      reason: "InvalidImageName",
      says: /^container main: image name img is invalid$/,
    },
    {
      name: "an image that cannot be pulled, without a word why",
      status: withContainer(waiting("ErrImagePull")),
      reason: "ImagePullFailed",
      says: /^container main: image img cannot be pulled$/,
    },
    {
      name: "a registry that is away, by the words of the container",
      status: withContainer(waiting("RegistryUnavailable", "no route")),
      reason: "ImagePullFailed",
      says: /cannot be pulled: no route$/,
    },
    {
      name: "a container that cannot be created, with the words of its runtime",
      status: withContainer(waiting("CreateContainerError", "no such device")),
      reason: "CreateContainerError",
      says: /^container main cannot be started: no such device$/,
    },
    {
      name: "a container that its runtime cannot run",
      status: crashing(ended(126, "ContainerCannotRun", "permission denied")),
      reason: "ContainerCannotRun",
      says: /cannot be started: permission denied; restarted 2 times$/,
    },
    {
      name: "a container that may end, and has",
      status: withContainer(ended(0)),
      spec: { restartPolicy: "Never" },
      reason: "NotReadyYet",
    },
    { name: "an image that may not be pulled", status: withContainer(waiting("ErrImageNeverPull")), reason: "ErrImageNeverPull" },
    {
      name: "an image that cannot be pulled, with the innermost error",
      status: withContainer(
        waiting("ErrImagePull", 'rpc error: code = Unknown desc = failed to pull and unpack image "img": not found'),
      ),
      reason: "ImagePullFailed",
      says: /^container main: image img cannot be pulled: not found$/,
    },
    {
      name: "a back-off with the error of the event",
      status: withContainer(waiting("ImagePullBackOff", 'Back-off pulling image "img"')),
      events: [about("Failed", 'Failed to pull image "img": rpc error: code = NotFound desc = no such tag', later)],
      reason: "ImagePullFailed",
      says: /cannot be pulled: no such tag$/,
      since: later,
    },
    {
      name: "a config error",
      status: withContainer(waiting("CreateContainerConfigError", "no key a")),
      reason: "CreateContainerConfigError",
      says: /cannot be configured: no key a/,
      remedy: /^Create what is missing/,
    },
    {
      name: "a root user where none may be",
      status: withContainer(waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")),
      reason: "CreateContainerConfigError",
      remedy: /^Set runAsUser/,
    },
    {
      name: "a container that cannot be started, with the last words of its runtime",
      status: withContainer(waiting("RunContainerError", "outer"), { lastState: ended(128, "", "inner") }),
      reason: "RunContainerError",
      says: /cannot be started: inner$/,
    },
    {
      name: "a container that exits is told by its code and log",
      status: crashing(ended(3)),
      reason: "ContainerExits",
      says: /exits with code 3; restarted 2 times$/,
      remedy: /kubectl logs p -n default -c main --previous/,
      since: later,
    },
    {
      name: "a program that cannot be executed",
      status: crashing(ended(127, "StartError", "no such file")),
      reason: "StartError",
      says: /cannot be started: no such file; restarted 2 times$/,
    },
    {
      name: "a program that ends with 0 and is restarted ends too early",
      status: crashing(ended(0)),
      reason: "ContainerExits",
      says: /exits with code 0/,
    },
    {
      name: "a container that ran out of memory without a limit",
      status: crashing(ended(137, "OOMKilled")),
      reason: "OOMKilled",
      says: /\(OOMKilled\); restarted/,
    },
    {
      name: "a startup probe that kills a container",
      status: crashing(ended(137)),
      events: [
        about("Unhealthy", "Startup probe failed: refused"),
        about("Killing", "Container main failed startup probe, will be restarted"),
      ],
      reason: "LivenessProbeFailed",
      says: /killed by its probe: Startup probe failed: refused; restarted 2 times/,
    },
    {
      name: "a probe that killed another container is not the cause",
      status: crashing(ended(1)),
      events: [about("Unhealthy", "Liveness probe failed"), about("Killing", "Container other failed liveness probe")],
      reason: "ContainerExits",
    },
    {
      name: "a probe that killed a container with a longer name is not the cause",
      status: crashing(ended(1)),
      events: [about("Unhealthy", "Liveness probe failed"), about("Killing", "Container main-2 failed liveness probe")],
      reason: "ContainerExits",
    },
    {
      name: "the probe that killed it, not that of another container",
      status: crashing(ended(137)),
      events: [
        aboutContainer("containers{other}", "Unhealthy", "Liveness probe failed: theirs"),
        aboutContainer("containers{main}", "Unhealthy", "Liveness probe failed: its own"),
        aboutContainer("containers{main}", "Killing", "Container main failed liveness probe, will be restarted"),
      ],
      reason: "LivenessProbeFailed",
      says: /Liveness probe failed: its own; restarted/,
    },
    {
      name: "a back-off with the error of its own image",
      status: withContainer(waiting("ImagePullBackOff", 'Back-off pulling image "img"')),
      events: [
        aboutContainer("containers{other}", "Failed", 'Failed to pull image "that": no such host', later),
        aboutContainer("containers{main}", "Failed", 'Failed to pull image "img": no such tag'),
      ],
      reason: "ImagePullFailed",
      says: /cannot be pulled: no such tag$/,
      since: earlier,
    },
    {
      name: "the image of an init container, with the error of its event",
      status: {
        ...withContainer(waiting("PodInitializing")),
        initContainerStatuses: [{ name: "a", ready: false, restartCount: 0, state: waiting("ImagePullBackOff") }],
      },
      spec: { initContainers: [{ name: "a", image: "that" }] },
      events: [aboutContainer("initContainers{a}", "Failed", 'Failed to pull image "that": no such host', later)],
      reason: "ImagePullFailed",
      says: /^init container a: image that cannot be pulled: no such host$/,
      since: later,
    },
    {
      name: "the second container's failure",
      status: {
        ...withContainer({ running: {} }),
        containerStatuses: [
          { name: "ok", ready: true, restartCount: 0, state: { running: {} } },
          { name: "main", ready: false, restartCount: 0, state: ended(2) },
        ],
      },
      reason: "ContainerExits",
      says: /^container main exits with code 2$/,
      remedy: /-c main$/,
    },
    {
      name: "an init container that fails, not one that is done",
      status: {
        ...withContainer(waiting("PodInitializing")),
        phase: "Pending",
        initContainerStatuses: [
          { name: "a", ready: true, restartCount: 0, state: ended(0) },
          { name: "b", ready: false, restartCount: 0, state: ended(4) },
        ],
      },
      reason: "ContainerExits",
      says: /^init container b exits with code 4/,
    },
    {
      name: "a volume that cannot be mounted, by its name",
      status: withContainer(waiting("ContainerCreating"), {}, "Pending"),
      events: [about("FailedMount", 'MountVolume.SetUp failed for volume "v" : no such share')],
      reason: "VolumeNotMounted",
      says: /a volume cannot be mounted: v: no such share/,
    },
    {
      name: "a sandbox that cannot be made",
      status: withContainer(waiting("ContainerCreating"), {}, "Pending"),
      events: [about("FailedCreatePodSandBox", "no cni")],
      reason: "SandboxFailed",
      says: /no cni/,
    },
    {
      name: "a network that is not ready, before any status of a container",
      status: { phase: "Pending", startTime: earlier },
      events: [about("NetworkNotReady", "wait")],
      reason: "NetworkNotReady",
    },
    {
      name: "containers that are being created",
      status: withContainer(waiting("ContainerCreating"), {}, "Pending"),
      reason: "Starting",
      since: earlier,
    },
    {
      name: "what is missing, when it runs without the status of a container",
      status: { phase: "Running" },
      spec: { volumes: [{ name: "v", configMap: { name: "gone" } }] },
      reason: "NotReady",
      says: /^is not ready$/,
    },
    {
      name: "a device that cannot be mapped",
      status: withContainer(waiting("ContainerCreating"), {}, "Pending"),
      events: [about("FailedMapVolume", "no device")],
      reason: "VolumeNotMounted",
      says: /^a volume cannot be mounted: no device$/,
    },
    {
      name: "a volume that cannot be attached, while an init container waits",
      status: {
        phase: "Pending",
        startTime: earlier,
        initContainerStatuses: [{ name: "i", ready: false, restartCount: 0, state: waiting("PodInitializing") }],
        containerStatuses: [{ name: "main", ready: false, restartCount: 0, state: { running: {} } }],
      },
      events: [about("FailedAttachVolume", 'AttachVolume.Attach failed for volume "v" : in use')],
      reason: "VolumeNotMounted",
      says: /^a volume cannot be mounted: v: in use$/,
    },
    {
      name: "a sandbox whose status cannot be read",
      status: withContainer(waiting(""), {}, "Pending"),
      events: [about("FailedPodSandBoxStatus", "timeout")],
      reason: "SandboxFailed",
    },
    {
      name: "a pod that its kubelet has not seen",
      status: { phase: "Pending" },
      reason: "KubeletHasNotSeen",
      says: /kubelet of n1/,
    },
    {
      name: "a pod that was evicted",
      status: { phase: "Failed", reason: "Evicted", message: "low on memory", startTime: earlier },
      reason: "Evicted",
      says: /^has failed \(Evicted\): low on memory$/,
      remedy: /^Relieve the node/,
      since: earlier,
    },
    {
      name: "a pod that has failed tells when its container ended",
      status: {
        phase: "Failed",
        startTime: earlier,
        containerStatuses: [
          { name: "x", ready: false, restartCount: 0, state: { terminated: { exitCode: 0, finishedAt: later } } },
        ],
      },
      reason: "PodFailed",
      says: /^has failed$/,
      since: later,
    },
    {
      name: "a startup probe that fails",
      status: withContainer({ running: {} }, { started: false }),
      events: [about("Unhealthy", "Readiness probe failed"), about("Unhealthy", "Startup probe failed: no")],
      reason: "StartupProbeFailed",
      says: /Startup probe failed: no/,
    },
    {
      name: "a readiness probe that failed before the pod started is no cause",
      status: withContainer({ running: {} }),
      events: [about("Unhealthy", "Readiness probe failed", "2026-03-01T11:00:00Z")],
      reason: "NotReadyYet",
    },
    {
      name: "a readiness probe of the second container that is not ready",
      status: {
        ...withContainer({ running: {} }),
        containerStatuses: [
          { name: "slow", ready: false, restartCount: 0, state: { running: {} } },
          { name: "main", ready: false, restartCount: 0, state: { running: {} } },
        ],
      },
      events: [aboutContainer("containers{main}", "Unhealthy", "Readiness probe failed: 500")],
      reason: "ReadinessProbeFailed",
      says: /^container main is not ready: Readiness probe failed: 500$/,
      remedy: /-c main$/,
    },
    {
      name: "a readiness probe of a container that is ready again is no cause",
      status: {
        ...withContainer({ running: {} }),
        containerStatuses: [
          { name: "again", ready: true, restartCount: 0, state: { running: {} } },
          { name: "main", ready: false, restartCount: 0, state: { running: {} } },
        ],
      },
      events: [aboutContainer("containers{again}", "Unhealthy", "Readiness probe failed: 500")],
      reason: "NotReadyYet",
      says: /^container main is not ready yet$/,
    },
    {
      name: "a readiness gate that is not met, the second one",
      status: {
        phase: "Running",
        conditions: [
          { type: "Ready", status: "False" },
          { type: "a", status: "True" },
        ],
        containerStatuses: [],
      },
      spec: { readinessGates: [{ conditionType: "a" }, { conditionType: "b" }] },
      reason: "ReadinessGate",
      says: /^readiness gate b is not met$/,
    },
    {
      name: "a pod that is not ready though its containers are",
      status: { phase: "Running", ...conditionOfType("Ready", "False", "PodNotWell", "m"), containerStatuses: [] },
      reason: "PodNotWell",
      says: /^is not ready: m$/,
    },
    {
      name: "a container whose first probe is still to come",
      status: withContainer({ running: {} }),
      spec: { containers: [{ name: "main", readinessProbe: { initialDelaySeconds: 90 } }] },
      reason: "NotReadyYet",
      says: /first probe is after 90s\)$/,
    },
  ].map(
    ({
      name,
      status,
      spec = {},
      events = [],
      ...want
    }: {
      name: string;
      status: object;
      spec?: object;
      events?: ReturnType<typeof about>[];
      reason: string;
      says?: RegExp;
      remedy?: RegExp;
      since?: string;
    }) => ({
      name: `a pod on a node with ${name}`,
      objects: [aPod(status, { ...onNode, ...spec }), good],
      events,
      chain: pod,
      ...want,
    }),
  ),
);

testExplanations([
  {
    name: "a pod that has failed has nothing to expect of its node, ready or not",
    objects: [
      aPod({ phase: "Failed", reason: "Evicted", message: "low on memory" }, onNode),
      stored("v1", "Node", "n1", { spec: {}, status: conditionOfType("Ready", "Unknown", "NodeStatusUnknown") }),
    ],
    chain: pod,
    reason: "Evicted",
  },
  { name: "a pod whose node does not exist", objects: [aPod({ phase: "Pending" }, onNode)], chain: pod, reason: "NodeMissing" },
  {
    name: "the topmost controller is named whose template has to be changed",
    objects: [
      aPod(withContainer(waiting("InvalidImageName")), onNode, ownedBy("ReplicaSet", "web-1")),
      stored("apps/v1", "ReplicaSet", "web-1", { metadata: ownedBy("Deployment", "web"), spec: {} }),
      stored("apps/v1", "Deployment", "web", { spec: {} }),
      good,
    ],
    chain: pod,
    remedy: /^Correct the image in deployment\/web\.$/,
  },
  {
    name: "a controller of the same name and another uid is not that of the pod",
    objects: [
      aPod(withContainer(waiting("InvalidImageName")), onNode, ownedBy("ReplicaSet", "web-1")),
      stored("apps/v1", "ReplicaSet", "web-1", { metadata: { uid: "another" }, spec: {} }),
      good,
    ],
    chain: pod,
    remedy: /^Correct the image in the pod\.$/,
  },
  ...(
    [
      ["a config map of a volume", { volumes: [{ name: "v", configMap: { name: "c" } }] }, /^config map c does not exist/],
      [
        "a projected secret, the second source",
        { volumes: [{ name: "v", projected: { sources: [{ configMap: { name: "there" } }, { secret: { name: "s" } }] } }] },
        /^secret s does not exist/,
      ],
      [
        "a variable of an init container",
        {
          initContainers: [
            { name: "i", env: [{ name: "a" }, { name: "b", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] },
          ],
        },
        /^secret s /,
      ],
      [
        "all variables of the second container",
        { containers: [{ name: "main" }, { name: "b", envFrom: [{ configMapRef: { name: "c" } }] }] },
        /^config map c /,
      ],
    ] as [string, object, RegExp][]
  ).map(([what, spec, says]) => ({
    name: `a pod that needs what is missing: ${what}`,
    objects: [
      aPod(withContainer(waiting("ContainerCreating"), {}, "Pending"), { ...onNode, ...spec }),
      good,
      stored("v1", "ConfigMap", "there"),
    ],
    chain: pod,
    reason: "SourceMissing",
    says,
  })),
  {
    name: "a pod without a config map that may be missing, or that may not be read",
    hidden: ["secrets"],
    objects: [
      aPod(withContainer(waiting("ContainerCreating"), {}, "Pending"), {
        ...onNode,
        volumes: [
          { name: "v", configMap: { name: "c", optional: true } },
          { name: "w", secret: { secretName: "s" } },
        ],
      }),
      good,
    ],
    chain: pod,
    reason: "Starting",
  },
]);

const ending = (deletionTimestamp: string, metadata: object = {}): Unstructured =>
  aPod(
    {
      phase: "Running",
      containerStatuses: [
        { name: "a", ready: true, restartCount: 0, state: { running: {} } },
        { name: "b", ready: false, restartCount: 0, state: ended(0) },
      ],
    },
    onNode,
    { deletionTimestamp, deletionGracePeriodSeconds: 30, ...metadata },
  );

testExplanations([
  {
    name: "a container that has time to end is named with the end of its time",
    objects: [ending("2026-03-01T12:00:10Z"), good],
    chain: pod,
    reason: "Terminating",
    says: /container a has not ended yet and has until 2026-03-01T12:00:10Z \(grace period 30 s\)/,
    since: "2026-03-01T11:59:40Z",
  },
  {
    name: "a container that has had its time is said to be over it",
    objects: [ending(later), good],
    chain: pod,
    says: /container a has not ended although its grace period of 30 s is over/,
  },
  {
    name: "a container has its time to end also where a finalizer keeps the pod",
    objects: [ending("2026-03-01T12:00:10Z", { finalizers: ["x/y"] }), good],
    chain: pod,
    reason: "Terminating",
  },
  {
    name: "a finalizer keeps a pod whose time is over",
    objects: [ending(later, { finalizers: ["x/y"] }), good],
    chain: pod,
    reason: "FinalizerPending",
  },
  {
    name: "a pod without running containers is being deleted",
    objects: [aPod({ phase: "Running" }, onNode, { deletionTimestamp: later }), good],
    chain: pod,
    reason: "BeingDeleted",
  },
]);
