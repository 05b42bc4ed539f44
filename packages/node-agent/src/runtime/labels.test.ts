import assert from "node:assert/strict";
import { test } from "node:test";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { containerAnnotations, restoreContainer, restorePod } from "./labels.ts";

test("what stopping a container needs is restored from its annotations: grace periods, preStop hook and ports", () => {
  const container = aContainer({
    lifecycle: { preStop: { httpGet: { port: "web" } } },
    ports: [{ name: "web", containerPort: 80 }],
  });
  const pod = aNodePod({ terminationGracePeriodSeconds: 30 }, { deletionGracePeriodSeconds: 5 });
  const annotations = containerAnnotations(pod, container, 2);
  assert.equal(annotations["io.kubernetes.container.restartCount"], "2");
  assert.deepEqual(restoreContainer("main", annotations), {
    name: "main",
    lifecycle: container.lifecycle,
    ports: container.ports,
  });
  const { metadata, spec } = restorePod(aNodePod({ terminationGracePeriodSeconds: 1 }), annotations);
  assert.deepEqual([metadata.deletionGracePeriodSeconds, spec.terminationGracePeriodSeconds], [5, 30]);
});

test("ports are restored, too, when the first has no name; a container without ports has no annotation", () => {
  const ports = [{ containerPort: 1 }, { name: "web", containerPort: 80 }];
  assert.deepEqual(restoreContainer("main", containerAnnotations(aNodePod(), aContainer({ ports }), 0)), { name: "main", ports });
  assert.deepEqual(restoreContainer("main", containerAnnotations(aNodePod(), aContainer({ ports: [] }), 0)), { name: "main" });
});

test("a deletion with grace period 0 is noted, too", () => {
  const annotations = containerAnnotations(aNodePod({}, { deletionGracePeriodSeconds: 0 }), aContainer(), 0);
  assert.equal(restorePod(aNodePod(), annotations).metadata.deletionGracePeriodSeconds, 0);
});

test("annotations that are missing or malformed restore nothing", () => {
  const annotations = {
    "io.kubernetes.container.preStopHandler": "{",
    "io.kubernetes.pod.deletionGracePeriod": "-1",
    "io.kubernetes.pod.terminationGracePeriod": "1e3",
  };
  assert.deepEqual(restoreContainer("main", annotations), { name: "main" });
  const pod = aNodePod({ terminationGracePeriodSeconds: 1 });
  assert.deepEqual(restorePod(pod, annotations), pod);
  assert.deepEqual(restoreContainer("main", {}), { name: "main" });
  const long = { "io.kubernetes.pod.terminationGracePeriod": "999999999", "io.kubernetes.pod.deletionGracePeriod": "1000000000" };
  const { metadata, spec } = restorePod(pod, long);
  assert.deepEqual([metadata.deletionGracePeriodSeconds, spec.terminationGracePeriodSeconds], [undefined, 999_999_999]);
});
