import { deployment, manifest, podSpec, restrictedDeployment, type Situation, template } from "./situation.ts";

/** Rollouts that do not come to an end. */
export const rolloutSituations: readonly Situation[] = [
  {
    name: "rollout-image",
    objects: [deployment({ image: "Not A:Name" })],
    args: ["deployment/web"],
    phrase: /^Cause: pod\/web-\S+: container main: image name Not A:Name is invalid/,
  },
  {
    name: "rollout-quota",
    ...restrictedDeployment("rollout-quota", "few", { pods: "0" }),
    args: ["deploy/web"],
    phrase:
      /^Cause: replicaset\/web-\S+: pods cannot be created: quota few does not allow it: requested pods=1, used pods=0, limited to pods=0/,
    quick: true,
  },
  {
    name: "rollout-paused",
    objects: [deployment({}, {}, { paused: true })],
    args: ["deployment/web"],
    phrase: /its rollout is paused/,
    quick: true,
  },
  {
    name: "rollout-account",
    objects: [deployment({}, { serviceAccountName: "nobody" })],
    args: ["deployment/web"],
    phrase: /service account nobody does not exist/,
    quick: true,
  },
  {
    name: "rollout-readiness",
    objects: [deployment({ readinessProbe: { exec: { command: ["false"] }, periodSeconds: 1 } })],
    args: ["deployment/web"],
    phrase: /^Cause: pod\/web-\S+: container main is not ready: Readiness probe failed/,
  },
  {
    name: "rollout-set",
    objects: [
      manifest("apps/v1", "StatefulSet", "web", {
        spec: {
          serviceName: "web",
          selector: { matchLabels: { app: "web" } },
          template: template(),
          volumeClaimTemplates: [
            {
              metadata: { name: "data" },
              spec: {
                storageClassName: "why-nothing",
                accessModes: ["ReadWriteOnce"],
                resources: { requests: { storage: "1Gi" } },
              },
            },
          ],
        },
      }),
    ],
    args: ["sts/web"],
    phrase: /^Cause: persistentvolumeclaim\/data-web-0: storage class why-nothing does not exist/,
  },
  {
    name: "rollout-nodes",
    objects: [
      manifest("apps/v1", "DaemonSet", "web", {
        spec: { selector: { matchLabels: { app: "web" } }, template: template({}, { nodeSelector: { disk: "floppy" } }) },
      }),
    ],
    args: ["ds/web"],
    phrase: /its node selector disk=floppy matches none of 1 node/,
    quick: true,
  },
  {
    name: "rollout-job",
    objects: [
      manifest("batch/v1", "Job", "web", {
        spec: { backoffLimit: 0, template: { spec: podSpec({ command: ["sh", "-c", "exit 4"] }, { restartPolicy: "Never" }) } },
      }),
    ],
    args: ["job/web"],
    phrase: /^Cause: pod\/web-\S+: container main exits with code 4/,
  },
];
