import { configMaps, deployments, horizontalPodAutoscalers } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isReady } from "../invariants/view.ts";
import { allFaults, lasting, namespace, type Plan, podTemplate } from "./plan.ts";

const labels = { app: "web" };
/** CPU request of each Pod, with a target utilization of 100 %. */
const requestMilli = 100;

/** Pods share a load that the metrics API reports; the number of replicas follows it. */
export const autoscalerPlan: Plan = {
  name: "autoscaler",
  controllers: ["podgc", "deployment", "replicaset", "horizontalpodautoscaling"],
  apis: ["autoscaling/v1", "autoscaling/v2"],
  faults: allFaults.filter((kind) => kind !== "skew"),
  rules: lasting,
  managerFlags: async () => [
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=5s",
    "--horizontal-pod-autoscaler-sync-period=5s",
  ],
  answers(path, view) {
    if (!path.startsWith("/apis/metrics.k8s.io/")) return undefined;
    const { data = {} } = (view.get("configmaps", `${namespace}/load`) ?? {}) as { data?: { milli?: string } }; // cast: an object of that resource
    const there = view.all("pods").filter(isReady);
    const cpu = `${Math.floor(Number(data.milli) / Math.max(1, there.length))}m`;
    const timestamp = new Date(Date.now()).toISOString();
    const items = there.map(({ metadata }) => ({
      metadata: { name: metadata.name, namespace },
      timestamp,
      window: "15s",
      containers: [{ name: "app", usage: { cpu } }],
    }));
    return { kind: "PodMetricsList", apiVersion: "metrics.k8s.io/v1beta1", metadata: {}, items };
  },
  async act(user) {
    const load = () => String(requestMilli * (1 + Math.floor(user.random() * 4)));
    await user.create(configMaps, { metadata: { name: "load", namespace }, data: { milli: load() } });
    await user.create(deployments, {
      metadata: { name: "web", namespace },
      spec: { selector: { matchLabels: labels }, template: podTemplate(labels) },
    });
    user.expectChanges(deployments, "web");
    await user.create(horizontalPodAutoscalers, {
      metadata: { name: "web", namespace },
      spec: {
        minReplicas: 1,
        maxReplicas: 5,
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
        metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 100 } } }],
      },
    });
    await user.pause(15_000 + user.random() * 10_000);
    await user.change(configMaps, "load", (object) => {
      (object as { data?: object }).data = { milli: load() }; // cast: a ConfigMap
    });
    await user.pause(user.random() * 10_000);
  },
  missing(view) {
    const { data } = view.get("configmaps", `${namespace}/load`) as unknown as { data: { milli: string } }; // cast: the plan has created it
    const wanted = Number(data.milli) / requestMilli;
    const { replicas } = view.get("deployments", `${namespace}/web`)?.spec ?? {};
    if (replicas !== wanted) return `the Deployment has ${replicas} replicas, its load needs ${wanted}`;
    const there = view.all("pods");
    if (there.length !== wanted || !there.every(isReady)) return `${there.length} pods, ${wanted} are wanted`;
    const { status } = view.get("horizontalpodautoscalers", `${namespace}/web`) ?? {};
    return status?.currentReplicas === wanted ? undefined : `the autoscaler's status says ${JSON.stringify(status)}`;
  },
};
