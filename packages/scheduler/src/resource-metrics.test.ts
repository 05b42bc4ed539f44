import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newResourceMetrics } from "./resource-metrics.ts";
import { aTestPod } from "./testing/test-cluster.ts";

test("/metrics/resources reports requests and limits of pods in whole units, and forgets deleted pods", async () => {
  const container = (requests: Record<string, string>, limits: Record<string, string>) => ({
    name: "c",
    image: "i",
    resources: { requests, limits },
  });
  const pod = aTestPod("web", {
    on: "a",
    priority: 5,
    spec: {
      schedulerName: "default-scheduler",
      containers: [
        container({ cpu: "250m", memory: "1Mi" }, { cpu: "1", "hugepages-2Mi": "4Mi" }),
        container({ cpu: "250m", "example.com/gpu": "2" }, { "ephemeral-storage": "0", "attachable-volumes-aws-ebs": "3" }),
      ],
      initContainers: [container({ memory: "2Mi" }, {})],
      overhead: { cpu: "10m", "ephemeral-storage": "1" },
    },
  });
  let pods: Pod[] = [pod];
  const registry = newResourceMetrics(() => pods);
  const own = 'namespace="default",node="a",pod="web",priority="5",';
  const lines = async () =>
    (await registry.render()).split("\n").flatMap((line) => (line === "" || line.startsWith("#") ? [] : line.replace(own, "")));
  assert.deepEqual(await lines(), [
    'kube_pod_resource_request{resource="cpu",scheduler="default-scheduler",unit="cores"} 0.51',
    'kube_pod_resource_request{resource="memory",scheduler="default-scheduler",unit="bytes"} 2097152',
    'kube_pod_resource_request{resource="example.com/gpu",scheduler="default-scheduler",unit=""} 2',
    'kube_pod_resource_request{resource="ephemeral-storage",scheduler="default-scheduler",unit="bytes"} 1',
    'kube_pod_resource_limit{resource="cpu",scheduler="default-scheduler",unit="cores"} 1.01',
    'kube_pod_resource_limit{resource="hugepages-2Mi",scheduler="default-scheduler",unit="bytes"} 4194304',
    'kube_pod_resource_limit{resource="attachable-volumes-aws-ebs",scheduler="default-scheduler",unit="integer"} 3',
  ]);
  pods = [aTestPod("waiting", { spec: { containers: [container({ cpu: "1" }, {})] } })];
  assert.deepEqual(await lines(), [
    'kube_pod_resource_request{namespace="default",node="",pod="waiting",priority="",resource="cpu",scheduler="",unit="cores"} 1',
  ]);
  pods = [];
  assert.deepEqual(await lines(), []);
});
