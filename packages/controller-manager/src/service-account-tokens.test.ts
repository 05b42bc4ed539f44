import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { alreadyExists, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { completeConfig } from "./config.ts";
import { kubeControllerManager } from "./flags.ts";
import { runManager } from "./manager.ts";
import { serviceAccountTokens } from "./service-account-tokens.ts";
import { startSmallApi } from "./testing/small-api.ts";

async function whoWrites(t: TestContext, ...flags: string[]): Promise<Record<string, string | undefined>> {
  const { host, writes } = await startSmallApi(t);
  const argv = ["--controllers=serviceaccount,root-ca-cert-publisher", "--leader-elect=false", "--controller-start-interval=0"];
  const config = completeConfig(parseFlags(kubeControllerManager.flags, [...argv, ...flags]).values);
  const ending = new AbortController();
  const running = runManager({
    config: { ...config, rootCa: "PEM" },
    clientConfig: { host, token: "manager" },
    log: discardLogger,
    clock: realClock,
    metrics: newMetricsRegistry({}),
    featureGates: newFeatureGates("kube-controller-manager", {}),
    turns: newUnlimitedTurns(),
    signal: ending.signal,
  });
  const writerOf = (resource: string): string | undefined =>
    writes.find(({ path }) => path === `/api/v1/namespaces/web/${resource}`)?.authorization;
  const writers = () => ({ account: writerOf("serviceaccounts"), bundle: writerOf("configmaps") });
  await waitFor(() => writers().account !== undefined && writers().bundle !== undefined, {
    what: "the writes of both controllers",
  });
  ending.abort();
  await running;
  return writers();
}

test("with --use-service-account-credentials each controller writes as its own account, made where it is missing", async (t) => {
  assert.deepEqual(await whoWrites(t, "--use-service-account-credentials"), {
    account: "Bearer token-of-service-account-controller",
    bundle: "Bearer token-of-root-ca-cert-publisher",
  });
});

test("without it all controllers write as the manager", async (t) => {
  assert.deepEqual(await whoWrites(t), { account: "Bearer manager", bundle: "Bearer manager" });
});

test("a token is renewed when it is refused, once for all requests that had it, and after 80 % of its lifetime", async () => {
  const clock = newFakeClock();
  let issued = 0;
  const create = async () => {
    const expirationTimestamp = new Date(clock.now() + 3_600_000).toISOString();
    return { status: { token: `token-${++issued}`, expirationTimestamp } };
  };
  const token = serviceAccountTokens({ create } as unknown as Client, "a", clock);
  assert.deepEqual([await token(undefined), await token(undefined)], ["token-1", "token-1"]);
  assert.deepEqual(await Promise.all([token("token-1"), token("token-1")]), ["token-2", "token-2"]);
  assert.deepEqual(
    [await token("token-1"), await token(undefined)],
    ["token-2", "token-2"],
    "refused late: another one is there already",
  );
  await clock.advance(47 * 60_000);
  assert.equal(await token("token-1"), "token-2");
  await clock.advance(2 * 60_000);
  assert.equal(await token("token-1"), "token-3");
});

test("a request that failed is repeated for the next caller; only a missing account is created", async () => {
  let isAway = true;
  const created: string[] = [];
  const create = async (_ref: unknown, _object: unknown, { subresource = "" }: { subresource?: string } = {}) => {
    created.push(subresource);
    if (isAway) throw serviceUnavailable("away");
    return { status: { token: "token-1", expirationTimestamp: "2022-01-01T01:00:00Z" } };
  };
  const token = serviceAccountTokens({ create } as unknown as Client, "a", newFakeClock());
  await assert.rejects(token(undefined), { message: "cannot get a token of service account kube-system/a" });
  isAway = false;
  assert.equal(await token(undefined), "token-1");
  assert.deepEqual(created, ["token", "token"]);
});

test("an account that another process creates first is used", async () => {
  let tries = 0;
  const create = async (_ref: unknown, _object: unknown, { subresource }: { subresource?: string } = {}) => {
    if (subresource !== "token") throw alreadyExists(serviceAccounts, "a");
    if (tries++ === 0) throw notFound(serviceAccounts, "a");
    return { status: { token: "token-1" } };
  };
  const clock = newFakeClock();
  const token = serviceAccountTokens({ create } as unknown as Client, "a", clock);
  assert.equal(await token(undefined), "token-1");
  await clock.advance(47 * 60_000);
  await token(undefined);
  assert.equal(tries, 2, "without an expiration it is taken to last an hour, as requested");
});

test("an account that cannot be made is a failure of the request, and is made with the next one", async () => {
  let isAway = true;
  let hasAccount = false;
  const create = async (_ref: unknown, _object: unknown, { subresource }: { subresource?: string } = {}) => {
    if (subresource === "token" && !hasAccount) throw notFound(serviceAccounts, "a");
    if (isAway) throw serviceUnavailable("away");
    hasAccount = true;
    return { status: { token: "token-1" } };
  };
  const token = serviceAccountTokens({ create } as unknown as Client, "a", newFakeClock());
  await assert.rejects(token(undefined), /away/);
  isAway = false;
  assert.equal(await token(undefined), "token-1");
});
