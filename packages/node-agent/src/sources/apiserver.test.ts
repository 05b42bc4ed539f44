import assert from "node:assert/strict";
import { test } from "node:test";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { configSeenAnnotation, configSourceAnnotation, isCriticalPod, isStaticPod, type NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import { followApiserver } from "./apiserver.ts";
import { newPodSources } from "./merge.ts";

type Handler = Parameters<SharedInformer<Pod>["addHandler"]>[0];

function follow() {
  const clock = newFakeClock();
  const handlers: Handler[] = [];
  const heard: string[] = [];
  const note = (what: string) => (pod: NodePod) => void heard.push(`${what} ${pod.metadata.uid}`);
  const sources = newPodSources(["api"], { added: note("added"), updated: note("updated"), removed: note("removed") });
  const informer = { addHandler: (given: Handler) => void handlers.push(given) } as unknown as SharedInformer<Pod>;
  followApiserver(informer, sources, clock);
  return { clock, heard, sources, handler: handlers[0] as Required<Handler> };
}

test("a pod from the API server is never static, whatever its annotations", () => {
  const { sources, handler } = follow();
  handler.added(aNodePod({}, { annotations: { [configSourceAnnotation]: "file", color: "green" } }));
  const pod = sources.get("uid-1") as NodePod;
  assert.deepEqual([isStaticPod(pod), isCriticalPod(pod)], [false, false]);
  hasFields(pod.metadata.annotations, { [configSourceAnnotation]: "api", color: "green" });
});

test("the time at which a pod was first seen does not change with its updates", async () => {
  const { clock, sources, handler } = follow();
  const seen = () => sources.get("uid-1")?.metadata.annotations?.[configSeenAnnotation];
  handler.added(aNodePod());
  const first = seen();
  assert.equal(first, new Date(clock.now()).toISOString());
  await clock.advance(5_000);
  handler.updated(aNodePod(), aNodePod({}, { labels: { a: "b" } }));
  assert.equal(seen(), first);
});

test("a pod recreated under the same name replaces the previous one", () => {
  const { heard, handler } = follow();
  handler.added(aNodePod());
  handler.updated(aNodePod(), aNodePod({}, { uid: "uid-2" }));
  handler.deleted(aNodePod({}, { uid: "uid-2" }));
  assert.deepEqual(heard, ["added uid-1", "removed uid-1", "added uid-2", "removed uid-2"]);
});

test("an incomplete pod is ignored and does not end the previous one", () => {
  const { heard, handler } = follow();
  const { spec: _, ...bare } = aNodePod();
  for (const metadata of [
    { namespace: "default", uid: "u" },
    { name: "web", uid: "u" },
    { name: "web", namespace: "default" },
  ])
    handler.added({ ...aNodePod(), metadata });
  handler.added(bare as Pod);
  handler.deleted({ ...aNodePod(), metadata: { name: "web" } });
  assert.deepEqual(heard, []);
  handler.added(aNodePod());
  handler.updated(aNodePod(), bare as Pod);
  handler.updated(aNodePod(), aNodePod({}, { labels: { a: "b" } }));
  assert.deepEqual(heard, ["added uid-1", "updated uid-1"]);
});
