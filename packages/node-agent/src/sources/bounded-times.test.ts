import assert from "node:assert/strict";
import { test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newPodSources } from "./merge.ts";

const all = 9223372036854775807n as unknown as number; // as decoded

for (const source of ["api", "file"] as const) {
  test(`durations of a pod from ${source} are limited to what timers can represent`, () => {
    const sources = newPodSources([source], { added() {}, updated() {}, removed() {} });
    const probe = { terminationGracePeriodSeconds: all, exec: {} };
    const spec = {
      terminationGracePeriodSeconds: -all,
      activeDeadlineSeconds: all,
      containers: [aContainer({ livenessProbe: probe, startupProbe: probe })],
    };
    sources.upsert(source, aNodePod(spec, { deletionGracePeriodSeconds: all }));
    const bounded = { terminationGracePeriodSeconds: 1e9, exec: {} };
    hasFields(sources.get("uid-1"), {
      metadata: { deletionGracePeriodSeconds: 1e9 },
      spec: {
        terminationGracePeriodSeconds: -1e9,
        activeDeadlineSeconds: 1e9,
        containers: [{ livenessProbe: bounded, startupProbe: bounded }],
      },
    });
    assert.equal(probe.terminationGracePeriodSeconds, all, "what the source said is its own");
    const usual = aNodePod({ terminationGracePeriodSeconds: 30 });
    sources.upsert(source, usual);
    assert.equal(sources.get("uid-1"), usual);
  });
}

test("durations of up to thirty years are not changed, alone or beside longer ones", () => {
  const sources = newPodSources(["api"], { added() {}, updated() {}, removed() {} });
  const most = aNodePod({ terminationGracePeriodSeconds: 1e9, activeDeadlineSeconds: -1e9 });
  sources.upsert("api", most);
  assert.equal(sources.get("uid-1"), most);
  const containers = [aContainer(), aContainer({ livenessProbe: { terminationGracePeriodSeconds: all } })];
  sources.upsert("api", aNodePod({ terminationGracePeriodSeconds: 7, containers }));
  assert.partialDeepStrictEqual(sources.get("uid-1")?.spec, { terminationGracePeriodSeconds: 7 });
  assert.equal(sources.get("uid-1")?.spec.containers[1]?.livenessProbe?.terminationGracePeriodSeconds, 1e9);
});

test("a startup probe alone, also of an init container, has a time that is limited", () => {
  const sources = newPodSources(["api"], { added() {}, updated() {}, removed() {} });
  const long = (name: string) => aContainer({ name, startupProbe: { terminationGracePeriodSeconds: all } });
  sources.upsert("api", aNodePod({ initContainers: [long("init")], containers: [long("main")] }));
  const { initContainers = [], containers = [] } = sources.get("uid-1")?.spec ?? {};
  assert.deepEqual(
    [...initContainers, ...containers].map(({ startupProbe }) => startupProbe?.terminationGracePeriodSeconds),
    [1e9, 1e9],
  );
});
