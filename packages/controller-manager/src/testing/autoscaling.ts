import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerSpec,
  MetricSpec,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import { deployments, horizontalPodAutoscalers, pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aDeployment, aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newHorizontalPodAutoscalerController } from "../controllers/horizontalpodautoscaling/controller.ts";
import { serveDiscovery } from "./discovery.ts";
import { newTestContext, type TestContext } from "./test-context.ts";

/** Fixture for autoscaler tests: a Deployment with Pods, an autoscaler and metrics. */
export const cpu = (averageUtilization: number): MetricSpec => ({
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization } },
});
const anAutoscaler = (spec: Partial<HorizontalPodAutoscalerSpec> = {}): HorizontalPodAutoscaler => ({
  metadata: { name: "web", namespace: "default" },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    minReplicas: 1,
    maxReplicas: 10,
    metrics: [cpu(50)],
    ...spec,
  },
});
const served = [{ ...deployments, scale: true }, services];
export const periodMs = 15_000;

interface Measured {
  readonly cpu?: string;
  readonly container?: string;
}

/** Sets the metrics-server response for the Deployment's Pods. */
export function measure({ client, clock }: TestContext, ...values: Measured[]): void {
  const timestamp = new Date(clock.now()).toISOString();
  client.rawAnswers.set("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods", {
    items: values.map(({ cpu: used = "0", container = "main" }, i) => ({
      metadata: { name: `p${i}` },
      timestamp,
      window: "30s",
      containers: [{ name: container, usage: { cpu: used } }],
    })),
  });
}

export async function started(
  t: { after(fn: () => void): void },
  spec: Partial<HorizontalPodAutoscalerSpec>,
  options: { replicas?: number; prepare?: (world: TestContext) => void } = {},
): Promise<TestContext> {
  const { replicas = 3, prepare = () => {} } = options;
  const world = newTestContext(t);
  serveDiscovery(world.client, served);
  const requests = { requests: { cpu: "1" } };
  const pod = (i: number) =>
    aPod({
      name: `p${i}`,
      labels: { app: "web" },
      spec: { containers: [{ name: "main", image: "x", resources: requests }] },
      status: { startTime: "2000-01-01T00:00:00Z" },
    });
  world.client.put(pods, ...Array.from({ length: replicas }, (_, i) => pod(i)));
  world.client.put(deployments, { ...aDeployment({ replicas }), status: { replicas } });
  world.client.put(horizontalPodAutoscalers, anAutoscaler(spec));
  prepare(world);
  await world.run(newHorizontalPodAutoscalerController(world.ctx));
  await oncePeriod(world);
  return world;
}

export async function oncePeriod({ clock }: TestContext): Promise<void> {
  await clock.advance(periodMs);
  await settle(60);
}

export const replicasOf = ({ client }: TestContext) => client.object<Deployment>(deployments, "default/web")?.spec?.replicas;
export const statusOf = ({ client }: TestContext) =>
  client.object<HorizontalPodAutoscaler>(horizontalPodAutoscalers, "default/web")?.status;
export const conditions = (world: TestContext) =>
  Object.fromEntries(
    (statusOf(world)?.conditions ?? []).map(({ type, status, reason, message }) => [type, `${status} ${reason}: ${message}`]),
  );
export const measured = (...values: string[]) => ({
  prepare: (world: TestContext) => measure(world, ...values.map((text) => ({ cpu: text }))),
});
