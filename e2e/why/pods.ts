import { pod, podSpec, type Situation, volumeOf } from "./situation.ts";

const requests = (name: string, amount: string): object => ({ resources: { requests: { [name]: amount } } });
const nodeAffinity = (key: string, value: string): object => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key, operator: "In", values: [value] }] }],
      },
    },
  },
});
const alone = {
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: { app: "alone" } }, topologyKey: "kubernetes.io/hostname" },
      ],
    },
  },
};
const hostPort = { ports: [{ containerPort: 80, hostPort: 31999 }] };
const ready = ["wait", "pod/first", "--for=condition=Ready", "--timeout=120s"];

/** Pods that cannot be scheduled or started. */
export const podSituations: readonly Situation[] = [
  {
    name: "cpu",
    objects: [pod("web", requests("cpu", "1000"))],
    args: ["pod/web"],
    phrase: /^Cause: pod\/web: not enough cpu on 1 node/,
    quick: true,
  },
  {
    name: "memory",
    objects: [pod("web", requests("memory", "100Ti"))],
    args: ["pod/web"],
    phrase: /not enough memory on 1 node/,
  },
  {
    name: "node-selector",
    objects: [pod("web", {}, { nodeSelector: { disk: "floppy" } })],
    args: ["po", "web"],
    phrase: /node selector disk=floppy matches none of 1 node/,
    quick: true,
  },
  {
    name: "node-affinity",
    objects: [pod("web", {}, nodeAffinity("zone", "mars"))],
    args: ["pod/web"],
    phrase: /required node affinity \(zone In mars\) matches none/,
  },
  {
    name: "anti-affinity",
    objects: [pod("first", {}, alone, { labels: { app: "alone" } })],
    steps: [
      ready,
      [
        "run",
        "web",
        "--image=busybox:1.35",
        "--labels=app=alone",
        `--overrides=${JSON.stringify({ spec: { ...podSpec({ name: "web" }), ...alone } })}`,
      ],
    ],
    args: ["pod/web"],
    phrase: /anti-affinity/,
  },
  {
    name: "host-port",
    objects: [pod("first", hostPort)],
    steps: [
      ready,
      ["run", "web", "--image=busybox:1.35", `--overrides=${JSON.stringify({ spec: podSpec({ name: "web", ...hostPort }) })}`],
    ],
    args: ["pod/web"],
    phrase: /host port 31999 is taken/,
  },
  {
    name: "no-claim",
    objects: [pod("web", {}, volumeOf("nowhere"))],
    args: ["pod/web"],
    phrase: /claim nowhere does not exist/,
    quick: true,
  },
  {
    name: "no-scheduler",
    objects: [pod("web", {}, { schedulerName: "nobody" })],
    args: ["pod/web"],
    phrase: /no scheduler named nobody/,
    quick: true,
  },
  {
    name: "image-name",
    objects: [pod("web", { image: "Not A:Name" })],
    args: ["pod/web"],
    phrase: /image name Not A:Name is invalid/,
  },
  {
    name: "never-pulled",
    objects: [pod("web", { image: "not-on-the-node:1", imagePullPolicy: "Never" })],
    args: ["pod/web"],
    phrase: /image not-on-the-node:1 is not on the node, and imagePullPolicy Never/,
  },
  {
    name: "no-registry",
    objects: [pod("web", { image: "registry.invalid/web:1" })],
    args: ["pod/web"],
    phrase: /image registry\.invalid\/web:1 cannot be pulled/,
  },
  {
    name: "no-config-map",
    objects: [pod("web", { envFrom: [{ configMapRef: { name: "settings" } }] })],
    args: ["pod/web"],
    phrase: /configmap "settings" not found/,
  },
  {
    name: "no-secret",
    objects: [
      pod(
        "web",
        { volumeMounts: [{ name: "keys", mountPath: "/keys" }] },
        { volumes: [{ name: "keys", secret: { secretName: "keys" } }] },
      ),
    ],
    args: ["pod/web"],
    phrase: /secret keys does not exist/,
  },
  {
    name: "crash",
    objects: [pod("web", { command: ["sh", "-c", "exit 3"] })],
    args: ["pod/web"],
    phrase: /container main exits with code 3/,
  },
  {
    name: "no-command",
    objects: [pod("web", { command: ["/nothing-here"] })],
    args: ["pod/web"],
    phrase: /cannot be started.*\/nothing-here/,
  },
];
