import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { clusterRoles, roles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { untilCaughtUp } from "./caught-up.ts";

const role = (name: string, resourceVersion: string): KubeObject => ({ metadata: { name, resourceVersion } });

/** A store and an informer with controllable contents. */
function catching(stored: KubeObject[], shown: KubeObject[], refs = [clusterRoles]) {
  const clock = newFakeClock();
  const state = { stored, shown, done: false };
  /** Objects are of the resource whose name theirs begins with; others are cluster roles. */
  const of = ({ resource }: ResourceRef, objects: KubeObject[]) =>
    objects.filter(({ metadata: { name = "" } }) => (name.startsWith("roles") ? "roles" : "clusterroles") === resource);
  const client = { list: async (ref: ResourceRef) => ({ items: of(ref, state.stored) }) } as unknown as Client;
  const lister = (ref: ResourceRef) => ({
    get: (key: string) => of(ref, state.shown).find(({ metadata }) => metadata.name === key),
  });
  const informers = { for: (ref: ResourceRef) => ({ lister: lister(ref) }) } as unknown as InformerFactory;
  const ending = new AbortController();
  const done = untilCaughtUp(client, informers, refs, clock, ending.signal).then(() => {
    state.done = true;
  });
  const look = async (): Promise<boolean> => {
    await settle();
    await clock.advance(100);
    await settle();
    return state.done;
  };
  return { state, look, ending, done };
}

test("an informer has caught up when it shows each object as it is stored, or newer", async () => {
  const { state, look, done } = catching([role("a", "5"), role("b", "6")], [role("a", "5")]);
  assert.equal(await look(), false, "one is missing");
  state.shown = [role("a", "5"), role("b", "4")];
  assert.equal(await look(), false, "one is older than it is stored");
  state.shown = [role("a", "7"), role("b", "6")];
  assert.equal(await look(), true);
  await done;
});

test("an object that was deleted meanwhile is not waited for", async () => {
  const { state, look, done } = catching([role("a", "5"), role("b", "6")], [role("a", "5")]);
  assert.equal(await look(), false);
  state.stored = [role("a", "5")];
  assert.equal(await look(), true);
  await done;
});

test("the wait ends when the server stops", async () => {
  const { look, ending, done } = catching([role("a", "5")], []);
  await look();
  ending.abort(new Error("stopped"));
  await assert.rejects(done, /stopped/);
});

test("each of several resources is waited for", async () => {
  const stored = [role("a", "5"), role("roles-b", "6")];
  const { state, look, done } = catching(stored, [role("a", "5")], [clusterRoles, roles]);
  assert.equal(await look(), false);
  state.shown = stored;
  assert.equal(await look(), true);
  await done;
});
