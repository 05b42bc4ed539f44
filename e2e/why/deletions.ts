import { claim, keep, manifest, pod, podSpec, release, type Situation, volume, volumeOf } from "./situation.ts";

const kept = manifest("v1", "ConfigMap", "kept", { metadata: keep });
const small = { resources: { requests: { storage: "1Gi" } } };
const remove = (object: string, ...flags: string[]): readonly string[] => [
  "delete",
  ...object.split("/"),
  "--wait=false",
  ...flags,
];

const definition = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "stuckthings.why.example.com", {
  spec: {
    group: "why.example.com",
    scope: "Namespaced",
    names: { plural: "stuckthings", singular: "stuckthing", kind: "StuckThing", listKind: "StuckThingList" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
  },
});

/** Deletions that hang. */
export const deletionSituations: readonly Situation[] = [
  {
    name: "finalizer",
    objects: [kept],
    steps: [remove("configmap/kept")],
    args: ["cm/kept"],
    phrase: /^Cause: configmap\/kept: is being deleted; finalizer example\.com\/keep keeps it/,
    undo: [release("configmap/kept")],
    quick: true,
  },
  {
    name: "namespace-content",
    objects: [kept],
    steps: [remove("namespace/why-namespace-content")],
    args: ["namespace/why-namespace-content"],
    phrase: /^Cause: configmap\/kept: .*finalizer example\.com\/keep/,
    undo: [release("configmap/kept")],
    quick: true,
  },
  {
    name: "claim-in-use",
    objects: [
      volume("why-claim-in-use"),
      claim("data", { ...small, storageClassName: "why-claim-in-use" }),
      pod("user", { volumeMounts: [{ name: "data", mountPath: "/data" }] }, volumeOf("data")),
    ],
    steps: [["wait", "pod/user", "--for=condition=Ready", "--timeout=120s"], remove("pvc/data")],
    args: ["pvc/data"],
    phrase: /no pod uses it any more: user does/,
    undo: [remove("pod/user"), remove("pv/why-claim-in-use")],
  },
  {
    name: "volume-in-use",
    objects: [volume("why-volume-in-use"), claim("data", { ...small, storageClassName: "why-volume-in-use" })],
    steps: [["wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s"], remove("pv/why-volume-in-use")],
    args: ["pv/why-volume-in-use"],
    phrase: /it is removed when claim why-volume-in-use\/data, to which it is bound, is deleted/,
    undo: [remove("pvc/data")],
  },
  {
    name: "definition",
    objects: [definition],
    steps: [
      ["wait", "crd/stuckthings.why.example.com", "--for=condition=Established", "--timeout=60s"],
      { make: manifest("why.example.com/v1", "StuckThing", "kept", { metadata: keep }) },
      remove("crd/stuckthings.why.example.com"),
    ],
    args: ["crd/stuckthings.why.example.com"],
    phrase: /^Cause: stuckthing\/kept: .*finalizer example\.com\/keep/,
    undo: [release("stuckthings.why.example.com/kept")],
  },
  {
    name: "foreground",
    objects: [
      manifest("apps/v1", "StatefulSet", "web", {
        spec: {
          serviceName: "web",
          selector: { matchLabels: { app: "web" } },
          template: { metadata: { labels: { app: "web" }, ...keep }, spec: podSpec({}, { schedulerName: "nobody" }) },
        },
      }),
    ],
    steps: [
      ["wait", "statefulset/web", "--for=jsonpath={.status.replicas}=1", "--timeout=60s"],
      remove("statefulset/web", "--cascade=foreground"),
    ],
    args: ["statefulset/web"],
    phrase: /^Cause: pod\/web-0: .*finalizer example\.com\/keep/,
    undo: [release("pod/web-0")],
  },
  {
    name: "grace-period",
    objects: [pod("web", { command: ["sh", "-c", "trap '' TERM; sleep 1000000"] }, { terminationGracePeriodSeconds: 600 })],
    steps: [["wait", "pod/web", "--for=condition=Ready", "--timeout=120s"], remove("pod/web")],
    args: ["pod/web"],
    phrase: /container main has not ended yet and has until .*grace period 600 s/,
    undo: [remove("pod/web", "--grace-period=0", "--force")],
  },
  {
    name: "api-service-away",
    objects: [
      manifest("apiregistration.k8s.io/v1", "APIService", "v1.away.why.example.com", {
        spec: {
          group: "away.why.example.com",
          version: "v1",
          groupPriorityMinimum: 100,
          versionPriority: 100,
          insecureSkipTLSVerify: true,
          service: { namespace: "why-api-service-away", name: "gone" },
        },
      }),
    ],
    steps: [remove("namespace/why-api-service-away")],
    args: ["ns/why-api-service-away"],
    phrase: /^Cause: apiservice\/v1\.away\.why\.example\.com: its service why-api-service-away\/gone does not exist/,
    undo: [remove("apiservice/v1.away.why.example.com")],
  },
];
