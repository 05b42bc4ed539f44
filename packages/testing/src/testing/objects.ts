import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";

/** A Deployment in the namespace `default` with one container. */
export function aDeployment(name: string, replicas: number, podSpec: object = {}): Deployment {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "nginx" }], ...podSpec } };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "default" },
    spec: { replicas, selector: { matchLabels: labels }, template },
  };
}

/** @param replicas exact number; an object without status is not ready */
export const isReady =
  (replicas: number) =>
  ({ status }: Deployment): boolean =>
    status?.readyReplicas === replicas;
