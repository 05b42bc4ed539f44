import { deployment, manifest, pod, type Situation } from "./situation.ts";

const scaler = manifest("autoscaling/v2", "HorizontalPodAutoscaler", "web", {
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    maxReplicas: 3,
    metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } }],
  },
});
const budget = manifest("policy/v1", "PodDisruptionBudget", "web", {
  spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
});

/** Autoscalers and budgets. */
export const autoscalingSituations: readonly Situation[] = [
  {
    name: "scaler-target",
    objects: [scaler],
    args: ["hpa/web"],
    phrase: /its target deployment\/web does not exist/,
    quick: true,
  },
  {
    name: "scaler-request",
    objects: [deployment(), scaler],
    args: ["hpa/web"],
    phrase: /a container of deployment\/web has no cpu request/,
  },
  {
    name: "scaler-zero",
    objects: [deployment({}, {}, { replicas: 0 }), scaler],
    args: ["hpa/web"],
    phrase: /does nothing while its target deployment\/web has 0 replicas/,
  },
  {
    name: "budget-full",
    objects: [deployment(), budget],
    steps: [["rollout", "status", "deployment/web", "--timeout=120s"]],
    args: ["pdb/web"],
    phrase: /allows no eviction: minAvailable 1 needs all 1 pod/,
  },
  {
    name: "budget-empty",
    objects: [pod("other", {}, { schedulerName: "nobody" }), budget],
    args: ["pdb/web"],
    phrase: /its selector app=web matches no pod/,
  },
];
