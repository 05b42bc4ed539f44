import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodePod } from "../pod/pod.ts";
import { aNodePod } from "../testing/builders.ts";
import { expectedSources } from "./expected-sources.ts";
import { newPodSources, type SourceName } from "./merge.ts";

function feed(...expected: SourceName[]) {
  const heard: string[] = [];
  const note = (what: string) => (pod: NodePod) => void heard.push(`${what} ${pod.metadata.uid}`);
  const sources = newPodSources(expected, {
    added: note("added"),
    updated: (pod, before) => void heard.push(`updated ${pod.metadata.uid} from ${before.metadata.labels?.version}`),
    removed: note("removed"),
    duplicate: (pod, source) => void heard.push(`duplicate ${pod.metadata.uid} of ${source}`),
  });
  return { sources, heard: () => heard.splice(0) };
}

const podOf = (name: string, uid: string, version = "1"): NodePod => aNodePod({}, { name, uid, labels: { version } });

test("a source's complete list adds, updates and removes only its own pods", () => {
  const { sources, heard } = feed("file", "http");
  const web = podOf("web", "w");
  sources.set("file", [web, podOf("db", "d"), podOf("log", "l")]);
  sources.set("http", [podOf("far", "f")]);
  assert.deepEqual(heard(), ["added w", "added d", "added l", "added f"]);
  sources.set("file", [web, podOf("db", "d", "2")]);
  assert.deepEqual(heard(), ["removed l", "updated d from 1"], "the same object is no news");
  sources.set("file", []);
  assert.deepEqual(heard(), ["removed w", "removed d"]);
  assert.deepEqual(
    sources.list().map(({ metadata }) => metadata.uid),
    ["f"],
  );
  assert.equal(sources.get("f")?.metadata.name, "far", "found at the second source");
  assert.equal(sources.get("w"), undefined);
});

test("of two pods of one name in a source's list the first is used, though the second was added before", () => {
  const { sources, heard } = feed("file");
  sources.set("file", [podOf("web", "old")]);
  heard();
  sources.set("file", [podOf("web", "new"), podOf("web", "old"), podOf("db", "d")]);
  assert.deepEqual(heard(), ["duplicate old of file", "removed old", "added new", "added d"]);
});

test("single pods are added, replaced and removed by uid; unknown pods and those of other sources are not removed", () => {
  const { sources, heard } = feed("api", "file");
  sources.upsert("api", podOf("web", "w"));
  sources.remove("file", "w");
  sources.remove("api", "other");
  assert.deepEqual(heard(), ["added w"]);
  sources.upsert("api", podOf("web", "w", "2"));
  sources.remove("api", "w");
  sources.remove("api", "w");
  assert.deepEqual(heard(), ["updated w from 1", "removed w"]);
});

test("no pod counts as removed before every source has reported, at least an empty list", () => {
  const { sources } = feed("api", "file");
  sources.upsert("api", podOf("web", "w"));
  sources.set("file", []);
  assert.equal(sources.allSynced(), false, "one pod is not all of them");
  sources.markSynced("api");
  assert.equal(sources.allSynced(), true);
  assert.equal(feed().sources.allSynced(), true);
});

for (const { staticPodPath, staticPodUrl, api, want } of [
  { staticPodPath: "", staticPodUrl: "", api: true, want: ["api"] },
  { staticPodPath: "/etc/pods", staticPodUrl: "", api: false, want: ["file"] },
  { staticPodPath: "/etc/pods", staticPodUrl: "http://x", api: true, want: ["file", "http", "api"] },
]) {
  test(`waits for ${want.join(", ")}`, () => {
    assert.deepEqual(expectedSources({ staticPodPath, staticPodUrl }, api), want);
  });
}
