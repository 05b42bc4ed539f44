import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { noCgroups } from "../testing/runner.ts";
import { type HousekeepingOptions, keepHouse } from "./housekeeping.ts";

const summary = (uid: string) => ({ uid, name: uid, namespace: "default", states: new Map() });

/** Pods with these UIDs in the runtime and on disk; only `wanted` is known. */
function house(parts: { inRuntime?: string[]; folders?: string[]; cgroups?: string[]; synced?: boolean; stuck?: string }) {
  const did: string[] = [];
  const { inRuntime = [], folders = [], cgroups = [], synced = true, stuck } = parts;
  const remove = (what: string) => async (uid: string) => {
    did.push(`${what} ${uid}`);
    if (uid === stuck) throw new Error("busy");
    return true;
  };
  const options = {
    intake: {
      isKnown: (uid: string) => uid === "wanted",
      isActive: () => true,
      sources: { allSynced: () => synced, list: () => [] },
    },
    workers: {
      removeOrphan: ({ metadata }: { metadata: { uid: string } }) => void did.push(`end ${metadata.uid}`),
      ending: () => [],
    },
    runner: { collect: () => void did.push("collect") },
    events: { pods: () => new Map(inRuntime.map((uid) => [uid, summary(uid)])), relist: async () => void did.push("relist") },
    volumes: { list: async () => folders, remove: remove("volumes") },
    cgroups: { ...noCgroups, list: async () => cgroups, remove: remove("cgroup") },
    mirrors: { removeOrphans: async () => void did.push("mirrors") },
    podLogsDir: "/nonexistent",
    containerLogsDir: "/nonexistent",
    log: discardLogger,
  };
  return { did, options: options as unknown as HousekeepingOptions };
}

test("orphaned pods are ended first; volumes and cgroups of pods without containers are removed", async () => {
  const { did, options } = house({
    inRuntime: ["wanted", "orphan"],
    folders: ["wanted", "orphan", "gone"],
    cgroups: ["wanted", "orphan", "gone"],
  });
  await keepHouse(options);
  assert.deepEqual(did, ["relist", "end orphan", "volumes gone", "cgroup gone", "mirrors", "collect"]);
  const classes: unknown[] = [];
  const listed = ["active", "ended"].map((uid) => ({ metadata: { uid } }) as never);
  await keepHouse({
    ...options,
    intake: {
      ...options.intake,
      isActive: ({ metadata }) => metadata.uid === "active",
      sources: { ...options.intake.sources, list: () => listed },
    },
    cgroups: { ...options.cgroups, updateClasses: async (pods) => void classes.push(...pods) },
  });
  assert.deepEqual(classes, listed.slice(0, 1), "a pod that has ended asks for nothing");
  const mirrors = { removeOrphans: () => Promise.reject(new Error("away")) } as unknown as HousekeepingOptions["mirrors"];
  await assert.rejects(keepHouse({ ...options, mirrors }), /^Error: away$/);
});

test("logs of a pod that is gone are removed, those of others stay", async (t) => {
  const podLogsDir = await mkdtemp(join(tmpdir(), "cox-house-"));
  t.after(() => rm(podLogsDir, { recursive: true, force: true }));
  for (const uid of ["wanted", "gone", "foreign"]) await mkdir(join(podLogsDir, `default_web_${uid}`));
  const { options } = house({ folders: ["wanted", "gone"] });
  await keepHouse({ ...options, podLogsDir });
  assert.deepEqual((await readdir(podLogsDir)).toSorted(), ["default_web_foreign", "default_web_wanted"]);
});

test("no pod is removed before all sources have reported", async () => {
  const { did, options } = house({ inRuntime: ["orphan"], folders: ["gone"], synced: false });
  await keepHouse(options);
  assert.deepEqual(did, []);
});

test("a failed clean-up of one pod does not prevent that of others", async () => {
  const { did, options } = house({ folders: ["stuck", "gone"], cgroups: ["stuck", "gone"], stuck: "stuck" });
  await keepHouse(options);
  const all = ["volumes stuck", "volumes gone", "cgroup stuck", "cgroup gone", "mirrors", "collect"];
  assert.deepEqual(did.splice(0), all);
  Object.defineProperty(options, "podLogsDir", {
    get() {
      throw new Error("logs cannot be reached");
    },
  });
  await keepHouse(options);
  assert.deepEqual(did, all);
});

test("a pod that a second list of the runtime does not contain is not ended, and its volumes are removed", async () => {
  const { did, options } = house({ inRuntime: ["wanted", "orphan"], folders: ["orphan"] });
  let pods = new Map([["orphan", summary("orphan")]]);
  const relist = async (): Promise<void> => {
    pods = new Map();
  };
  await keepHouse({ ...options, events: { ...options.events, pods: () => pods, relist } });
  assert.deepEqual(did, ["volumes orphan", "mirrors", "collect"]);
});

test("a pod that returns before the clean-up keeps its volumes and cgroup", async () => {
  const { did, options } = house({ inRuntime: ["orphan"], folders: ["back", "gone"], cgroups: ["back"] });
  let isBack = false;
  const intake = { ...options.intake, isKnown: (uid: string) => uid === "back" && isBack };
  const relist = async (): Promise<void> => {
    isBack = true;
  };
  await keepHouse({ ...options, intake, events: { ...options.events, relist } });
  assert.deepEqual(did, ["end orphan", "volumes gone", "mirrors", "collect"]);
});

test("no pod is removed before the runtime has reported; a terminating pod keeps its mirror pod", async () => {
  const { did, options } = house({ folders: ["gone"], cgroups: ["gone"] });
  await keepHouse({ ...options, events: { ...options.events, pods: () => undefined } });
  assert.deepEqual(did, []);
  let kept: readonly { metadata: { uid: string } }[] = [];
  const ending = { metadata: { uid: "ending" } } as never;
  const listed = { metadata: { uid: "listed" } } as never;
  await keepHouse({
    ...options,
    intake: { ...options.intake, sources: { ...options.intake.sources, list: () => [listed] } },
    workers: { ...options.workers, ending: () => [ending] },
    mirrors: {
      async removeOrphans(pods: typeof kept) {
        kept = pods;
      },
    } as NonNullable<HousekeepingOptions["mirrors"]>,
  });
  assert.deepEqual(
    kept.map(({ metadata }) => metadata.uid),
    ["listed", "ending"],
  );
});

test("mirror pods are compared with the pods of all sources and with those that are still ending", async () => {
  const { options } = house({});
  const [wanted, ending] = ["wanted", "ending"].map((uid) => ({ metadata: { uid } }) as never);
  const compared: unknown[] = [];
  await keepHouse({
    ...options,
    intake: { ...options.intake, sources: { ...options.intake.sources, list: () => [wanted as never] } },
    workers: { ...options.workers, ending: () => [ending as never] },
    mirrors: {
      removeOrphans: async (statics: unknown[]) => void compared.push(...statics),
    } as unknown as HousekeepingOptions["mirrors"],
  });
  assert.deepEqual(compared, [wanted, ending]);
});
