import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as netConnect } from "node:net";
import { type TestContext, test } from "node:test";
import type { ClientObserver } from "@coxswain/apimachinery/client/client";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import {
  clusterRoleBindings,
  clusterRoles,
  persistentVolumes,
  pods,
  roleBindings,
  roles,
  volumeAttachments,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import { startTlsPeer } from "../testing/tls-peer.ts";
import { parseAbacPolicies } from "./abac.ts";
import type { Attributes } from "./authorizer.ts";
import { buildAuthorization } from "./build.ts";

const nodeRules = [{ verbs: ["list"], apiGroups: [""], resources: ["services"] }];
const { policies } = parseAbacPolicies('{"user":"joe","resource":"pods","namespace":"web"}', "policies");

type Options = Parameters<typeof buildAuthorization>[0];
type BuiltOptions = { hangs?: string; gates?: readonly string[] } & Partial<
  Pick<Options, "observer" | "connect" | "servesRbac" | "webhook">
> & {
    unauthorizedTtlMs?: number;
  };

/** The authorization of these modes, with informers that have started. @param hangs a resource that is never listed */
async function built(
  t: TestContext,
  modes: readonly string[],
  { hangs = "", gates = [] as readonly string[], unauthorizedTtlMs = 0, ...rest }: BuiltOptions = {},
) {
  const client = newFakeClient();
  if (hangs !== "") client.react("list", hangs, () => new Promise(() => {}));
  const clock = newFakeClock();
  const informers = newInformerFactory(client, { log: discardLogger, clock });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const status = { allowed: false, reason: "the webhook says so" };
  const peer = await startTlsPeer(t, () => ({ body: { status } }));
  const webhook = { config: { host: peer.url, ca: peer.ca }, version: "v1", authorizedTtlMs: 0, unauthorizedTtlMs };
  const authorization = buildAuthorization({
    ...{ modes, informers, nodeRules, clock, webhook, abacPolicies: policies, signal: stop.signal },
    featureEnabled: (gate) => gates.includes(gate),
    servesRbac: true,
    ...rest,
  });
  informers.start(stop.signal);
  return { authorization, informers, clock, peer };
}

const asks = (name: string, groups: readonly string[], more: Partial<Attributes> = {}): Attributes => ({
  ...{ user: { name, groups: [...groups] }, verb: "list", isResourceRequest: true, namespace: "web" },
  ...{ group: "", version: "v1", resource: "services", subresource: "", name: "", path: "", ...more },
});

const ofPolicy = [roles, roleBindings, clusterRoles, clusterRoleBindings];
const ofGraph = [pods, persistentVolumes, volumeAttachments];

test("without the group of RBAC, and without the mode, nothing is waited for, and there are no rules of RBAC", async (t) => {
  const { authorization, informers } = await built(t, ["AlwaysAllow"], { hangs: "clusterroles", servesRbac: false });
  assert.deepEqual([authorization.synced(), authorization.rbacRules], [true, undefined]);
  await informers.waitForSync(AbortSignal.timeout(60_000));
  const needed = await built(t, ["RBAC"], { hangs: "clusterroles", servesRbac: false });
  assert.equal(needed.authorization.synced(), false);
});

for (const { modes, hangs, gates = [] } of [
  { modes: ["RBAC"], hangs: "clusterrolebindings" },
  { modes: ["Node", "RBAC"], hangs: "clusterrolebindings" },
  { modes: ["Node"], hangs: "volumeattachments" },
  { modes: ["RBAC", "Node"], hangs: "pods" },
  { modes: ["Node"], hangs: "nodes", gates: ["DynamicKubeletConfig"] },
]) {
  test(`authorization by ${modes} is not ready before ${hangs} are known`, async (t) => {
    const { authorization, informers } = await built(t, modes, { hangs, gates });
    const others = [...ofPolicy, ...(modes.includes("Node") ? ofGraph : [])].filter(({ resource }) => resource !== hangs);
    await waitFor(() => others.every((ref) => informers.for(ref).synced), { what: "the others" });
    assert.equal(authorization.synced(), false);
  });
}

test("authorization is ready when all that its modes need is known", async (t) => {
  const { authorization } = await built(t, ["Node", "RBAC"], { hangs: "nodes" });
  await waitFor(() => authorization.synced(), { what: "the policy and the graph" });
});

for (const { modes, user, groups, decision } of [
  { modes: ["AlwaysDeny"], user: "root", groups: ["system:masters"], decision: "allow" },
  { modes: ["AlwaysDeny"], user: "joe", groups: [], decision: "no-opinion" },
  { modes: ["AlwaysDeny", "AlwaysAllow"], user: "joe", groups: [], decision: "allow" },
  { modes: ["RBAC"], user: "joe", groups: [], decision: "no-opinion" },
  { modes: ["RBAC", "Node"], user: "system:node:a", groups: ["system:nodes"], decision: "allow" },
  { modes: ["Webhook", "Node"], user: "system:node:a", groups: ["system:nodes"], decision: "allow" },
  { modes: ["Node"], user: "joe", groups: [], decision: "no-opinion" },
]) {
  test(`the authorizers of ${modes} say ${decision} to ${user}`, async (t) => {
    const { authorization } = await built(t, modes);
    assert.equal((await authorization.authorize(asks(user, groups))).decision, decision);
  });
}

test("a request that no mode allows is answered with the reasons of all, in the order of the modes", async (t) => {
  const { authorization } = await built(t, ["AlwaysDeny", "Webhook", "ABAC"]);
  const { decision, reason } = await authorization.authorize(asks("ann", []));
  assert.deepEqual([decision, reason], ["no-opinion", "Everything is forbidden.\nthe webhook says so\nNo policy matched."]);
});

for (const { modes, rules, errors } of [
  { modes: ["ABAC", "AlwaysAllow"], rules: 4, errors: [] },
  { modes: ["ABAC", "Webhook"], rules: 2, errors: ["webhook authorizer does not support user rule resolution"] },
  { modes: ["AlwaysDeny"], rules: 0, errors: [] },
]) {
  test(`the rules of a user by ${modes} are those of each mode`, async (t) => {
    const { authorization } = await built(t, modes);
    const found = await authorization.resolveRules({ name: "joe", groups: [] }, "web");
    assert.deepEqual([found.rules.length, found.errors.map(({ message }) => message)], [rules, errors]);
    assert.equal(found.incomplete, errors.length > 0);
  });
}

test("the mode Webhook without its file is an error", async (t) => {
  const message = "authorization-mode Webhook's authorization config file not passed";
  await assert.rejects(built(t, ["RBAC", "Webhook"], { webhook: undefined }), { message });
});

test("a mode that is not known is an error", async (t) => {
  await assert.rejects(built(t, ["Magic"]), { message: "unknown authorization mode Magic specified" });
});

test("the webhook is called through its dialer, and each call is observed", async (t) => {
  const [dialled, calls]: [string[], unknown[]] = [[], []];
  const connect: Connect = async (host, port) => {
    dialled.push(host);
    const socket = netConnect(port, host);
    await once(socket, "connect");
    return socket;
  };
  const observer: ClientObserver = {
    requested: (method, _host, code) => void calls.push([method, code]),
    rateLimited: () => {},
  };
  const { authorization } = await built(t, ["Webhook"], { connect, observer });
  await authorization.authorize(asks("ann", []));
  assert.deepEqual([dialled.length > 0, calls], [true, [["POST", "200"]]]);
});

test("a wall clock that is set forward ends no answer of the webhook", async (t) => {
  const { authorization, clock, peer } = await built(t, ["Webhook"], { unauthorizedTtlMs: 10_000 });
  await authorization.authorize(asks("ann", []));
  clock.setOn(3_600_000);
  await authorization.authorize(asks("ann", []));
  assert.equal(peer.requests.length, 1);
  await clock.advance(10_000);
  await authorization.authorize(asks("ann", []));
  assert.equal(peer.requests.length, 2);
});

for (const { name, groups, incomplete } of [
  { name: "system:node:a", groups: ["system:nodes"], incomplete: true },
  { name: "joe", groups: [], incomplete: false },
]) {
  test(`the rules of ${name} by the mode Node are ${incomplete ? "not all that there are" : "none"}`, async (t) => {
    const { authorization } = await built(t, ["Node"]);
    const found = await authorization.resolveRules({ name, groups }, "web");
    const errors = incomplete ? ["node authorizer does not support user rule resolution"] : [];
    assert.deepEqual([found.rules, found.incomplete, found.errors.map(({ message }) => message)], [[], incomplete, errors]);
  });
}

test("the rules of RBAC are those of its policy, whatever the modes are", async (t) => {
  const { authorization } = await built(t, ["AlwaysAllow"]);
  assert.deepEqual(await authorization.rbacRules?.({ name: "joe", groups: [] }, "web"), {
    rules: [],
    incomplete: false,
    errors: [],
  });
});
