import assert from "node:assert/strict";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { newMetricsRegistry } from "../../process/metrics/registry.ts";
import { settle } from "../../testing/wait-for.ts";
import type { Exchange } from "../exchange.ts";
import type { AuthenticationResult, Authenticator, TokenAuthenticator } from "./authenticator.ts";
import { bearerToken, webSocketToken } from "./bearer-token.ts";
import { cachedTokens, newTokenCacheMetrics } from "./token-cache.ts";
import { unionAuthenticator, unionTokenAuthenticator, withAuthenticatedGroup, withFallback } from "./union.ts";

const aResult = (name: string, groups: readonly string[] = []): AuthenticationResult => ({
  user: { name, uid: "", groups, extra: {} },
});

/** A cache whose lookups are recorded, and answered when the test says so. */
function cached(ttls: { successTtlMs?: number; failureTtlMs?: number } = {}) {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const asked: string[] = [];
  const waiting: PromiseWithResolvers<AuthenticationResult | undefined>[] = [];
  const lookUp: TokenAuthenticator = (token, audiences) => {
    asked.push([token, ...(audiences ?? [])].join(" "));
    const answer = Promise.withResolvers<AuthenticationResult | undefined>();
    waiting.push(answer);
    return answer.promise;
  };
  const options = { successTtlMs: 10_000, failureTtlMs: 2_000, ...ttls, clock, metrics: newTokenCacheMetrics(registry) };
  const authenticate = cachedTokens(lookUp, options);
  return {
    clock,
    registry,
    authenticate,
    /** The lookups since the last call. */
    asked: () => asked.splice(0),
    /** Answers the first open lookup. */
    answer: (result: AuthenticationResult | Error | undefined) => {
      const first = waiting.shift();
      if (result instanceof Error) first?.reject(result);
      else first?.resolve(result);
    },
    /** One authentication whose lookup, if there is one, is answered. */
    async once(token: string, result?: AuthenticationResult, audiences?: readonly string[]) {
      const found = authenticate(token, audiences);
      waiting.shift()?.resolve(result);
      return (await found)?.user.name;
    },
  };
}

test("a token's result is kept for its time exactly, and looked up again then", async () => {
  const { clock, once, asked } = cached();
  assert.equal(await once("t", aResult("ann")), "ann");
  await clock.advance(9_999);
  assert.equal(await once("t", aResult("bob")), "ann");
  await clock.advance(1);
  assert.equal(await once("t", aResult("bob")), "bob");
  assert.deepEqual(asked(), ["t", "t"]);
});

test("an unknown token is kept for the time of failures, and known as soon as it is over", async () => {
  const { clock, once, asked } = cached();
  assert.equal(await once("t", undefined), undefined);
  await clock.advance(1_999);
  assert.equal(await once("t", aResult("ann")), undefined);
  await clock.advance(1);
  assert.equal(await once("t", aResult("ann")), "ann");
  assert.equal(asked().length, 2);
});

test("results are kept by token and audiences", async () => {
  const { once, asked } = cached();
  assert.equal(await once("t", aResult("api"), ["api"]), "api");
  assert.equal(await once("t", aResult("other"), ["other"]), "other");
  assert.equal(await once("t", aResult("any")), "any");
  assert.equal(await once("u", aResult("u"), ["api"]), "u");
  assert.equal(await once("t", undefined, ["api"]), "api");
  assert.deepEqual(asked(), ["t api", "t other", "t", "u api"]);
});

test("concurrent authentications of a token share one lookup, and those after a failed one make another", async () => {
  const { authenticate, answer, asked } = cached();
  const both = [authenticate("t", undefined), authenticate("t", undefined)];
  answer(new Error("the webhook is down"));
  for (const one of both) await assert.rejects(one, /the webhook is down/);
  const next = authenticate("t", undefined);
  answer(aResult("ann"));
  assert.equal((await next)?.user.name, "ann");
  assert.deepEqual(asked(), ["t", "t"]);
});

test("with a time of 0 nothing is kept, and running lookups are shared all the same", async () => {
  const { authenticate, answer, asked, once } = cached({ successTtlMs: 0, failureTtlMs: 0 });
  const both = [authenticate("t", undefined), authenticate("t", undefined)];
  answer(aResult("ann"));
  await Promise.all(both);
  assert.equal(asked().length, 1);
  await once("t", undefined);
  await once("t", undefined);
  assert.equal(asked().length, 2);
});

test("metrics count hits, misses, failed lookups, and what is under way", async () => {
  const { registry, authenticate, answer, once } = cached();
  const shown = async (pattern: RegExp) =>
    (await registry.render())
      .split("\n")
      .filter((line) => pattern.test(line))
      .sort();
  const failing = authenticate("t", undefined);
  const sharing = authenticate("t", undefined);
  await settle();
  assert.deepEqual(await shown(/^authentication_token_cache_active_fetch_count\{/), [
    'authentication_token_cache_active_fetch_count{status="blocked"} 2',
    'authentication_token_cache_active_fetch_count{status="in_flight"} 1',
  ]);
  answer(new Error("down"));
  await Promise.allSettled([failing, sharing]);
  await once("t", aResult("ann"));
  await once("t");
  assert.deepEqual(await shown(/^authentication_token_cache_(active_fetch_count|fetch_total|request_total)\{/), [
    'authentication_token_cache_active_fetch_count{status="blocked"} 0',
    'authentication_token_cache_active_fetch_count{status="in_flight"} 0',
    'authentication_token_cache_fetch_total{status="error"} 1',
    'authentication_token_cache_fetch_total{status="ok"} 1',
    'authentication_token_cache_request_total{status="hit"} 1',
    'authentication_token_cache_request_total{status="miss"} 3',
  ]);
});

const none = async (): Promise<undefined> => undefined;
const fails = (reason: string) => async (): Promise<never> => {
  throw new Error(reason);
};
const anExchange = {} as Exchange;

for (const { name, run } of [
  {
    name: "requests",
    run: (all: readonly (() => Promise<AuthenticationResult | undefined>)[]) => unionAuthenticator(all)(anExchange),
  },
  {
    name: "tokens",
    run: (all: readonly (() => Promise<AuthenticationResult | undefined>)[]) => unionTokenAuthenticator(all)("t", undefined),
  },
]) {
  test(`of several authenticators of ${name} the first that knows the user decides, whatever failed before`, async () => {
    const ann = async () => aResult("ann");
    assert.equal((await run([none, ann, fails("never asked")]))?.user.name, "ann");
    assert.equal((await run([fails("a"), none, ann]))?.user.name, "ann");
    assert.equal(await run([none, none]), undefined);
    await assert.rejects(run([none, fails("a")]), { message: "a" });
    await assert.rejects(run([fails("a"), none, fails("b")]), { message: "[a, b]" });
  });
}

test("the fallback is asked when nobody knows the user, and not when the credential is invalid", async () => {
  const anonymous: Authenticator = async () => aResult("system:anonymous");
  assert.equal((await withFallback(none, anonymous)(anExchange))?.user.name, "system:anonymous");
  await assert.rejects(withFallback(fails("invalid"), anonymous)(anExchange), /invalid/);
});

test("system:authenticated is added once, not to anonymous users and not beside system:unauthenticated", async () => {
  const groupsOf = async (name: string, groups: readonly string[]) =>
    (await withAuthenticatedGroup(async () => aResult(name, groups))(anExchange))?.user.groups;
  assert.deepEqual(await groupsOf("ann", ["a", "b"]), ["a", "b", "system:authenticated"]);
  assert.deepEqual(await groupsOf("ann", ["system:authenticated"]), ["system:authenticated"]);
  assert.deepEqual(await groupsOf("ann", ["system:unauthenticated"]), ["system:unauthenticated"]);
  assert.deepEqual(await groupsOf("system:anonymous", []), []);
  assert.equal(await withAuthenticatedGroup(none)(anExchange), undefined);
});

/** Requests with a token on one connection or another. */
function bearing(known: Record<string, string>) {
  const clock = newFakeClock();
  const asked: string[] = [];
  const lookUp: TokenAuthenticator = async (token) => {
    asked.push(token);
    return Object.hasOwn(known, token) ? aResult(known[token] ?? "") : undefined;
  };
  const authenticate = bearerToken(lookUp, [], clock);
  const connections = [{}, {}] as TLSSocket[];
  const send = async (authorization: string | undefined, connection = 0) =>
    (await authenticate({ headers: { authorization }, tls: connections[connection] } as unknown as Exchange))?.user.name;
  return { clock, send, asked: () => asked.splice(0) };
}

test("a connection's last valid token is remembered for a second, also when the wall clock is set back", async () => {
  const known: Record<string, string> = { t: "ann" };
  const { clock, send, asked } = bearing(known);
  assert.deepEqual([await send("Bearer t"), await send("Bearer t")], ["ann", "ann"]);
  assert.deepEqual(asked(), ["t"]);
  await send("Bearer t", 1);
  assert.deepEqual(asked(), ["t"], "another connection");
  clock.setOn(-3_600_000);
  await clock.advance(999);
  await send("Bearer t");
  assert.deepEqual(asked(), []);
  await clock.advance(1);
  delete known["t"];
  await assert.rejects(send("Bearer t"), /invalid bearer token/);
});

test("a remembered token is not taken for another one, nor for a request without one", async () => {
  const { send, asked } = bearing({ t: "ann", u: "bob" });
  await send("Bearer t");
  assert.equal(await send("Bearer u"), "bob");
  assert.equal(await send("Bearer t"), "ann");
  await assert.rejects(send("Bearer tt"), /invalid bearer token/);
  assert.deepEqual(asked(), ["t", "u", "t", "tt"]);
  for (const header of [undefined, "", "Bearer", "Bearer ", "Basic t"])
    assert.equal(await send(header), undefined, String(header));
  assert.equal(await send("bEaReR t"), "ann", "the scheme in any spelling");
});

const encoded = (token: string): string => `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;

test("a request that upgrades to another protocol has no WebSocket's token", async () => {
  const authenticate = webSocketToken(async () => aResult("ann"), []);
  for (const upgrade of ["SPDY/3.1", undefined]) {
    const headers = { upgrade, "sec-websocket-protocol": `chat, ${encoded("t")}` };
    assert.equal(await authenticate({ headers, upgrade: {} } as unknown as Exchange), undefined);
  }
  const headers = { upgrade: "websocket", "sec-websocket-protocol": `chat, ${encoded("t")}` };
  assert.equal(await authenticate({ headers } as unknown as Exchange), undefined, "no upgrade at all");
});

test("tokens are authenticated for the audiences of this server, if it has any", async () => {
  const asked: unknown[] = [];
  const lookUp: TokenAuthenticator = async (token, audiences) => {
    asked.push([token, audiences]);
    return aResult("ann");
  };
  for (const audiences of [["api"], []]) {
    const headers = { authorization: "  Bearer t ", upgrade: "websocket", "sec-websocket-protocol": `chat, ${encoded("u")}` };
    const exchange = { headers, upgrade: {} } as unknown as Exchange;
    await bearerToken(lookUp, audiences, newFakeClock())(exchange);
    await webSocketToken(lookUp, audiences)(exchange);
  }
  assert.deepEqual(asked, [
    ["t", ["api"]],
    ["u", ["api"]],
    ["t", undefined],
    ["u", undefined],
  ]);
});

for (const { name, protocols, want } of [
  { name: "of a known user", protocols: `chat, ${encoded("t")}`, want: "ann" },
  { name: "among others", protocols: "chat, other", want: undefined },
  { name: "of nobody", protocols: `chat, ${encoded("x")}`, want: /invalid bearer token/ },
  { name: "alone", protocols: encoded("t"), want: /missing additional subprotocol/ },
  { name: "twice", protocols: `chat, ${encoded("t")}, ${encoded("u")}`, want: /multiple base64\.bearer\.authorization tokens/ },
  { name: "that is no base64url", protocols: "chat, base64url.bearer.authorization.k8s.io.a+b", want: /token encoding/ },
]) {
  test(`a WebSocket's token ${name}: ${want ?? "no credential"}`, async () => {
    const authenticate = webSocketToken(async (token) => (token === "t" ? aResult("ann") : undefined), []);
    const headers: Record<string, string> = { upgrade: "WebSocket", "sec-websocket-protocol": protocols };
    const asking = authenticate({ headers, upgrade: {} } as unknown as Exchange);
    if (want instanceof RegExp) return assert.rejects(asking, want);
    assert.equal((await asking)?.user.name, want);
    if (want !== undefined) assert.equal(headers["sec-websocket-protocol"], "chat", "the token is not passed on");
  });
}

test("the results of a thousand tokens are kept", async () => {
  const { once, asked } = cached();
  for (let i = 0; i < 1000; i++) await once(`t${i}`, aResult(`u${i}`));
  asked();
  assert.equal(await once("t0"), "u0");
  assert.equal(await once("t999"), "u999");
  assert.deepEqual(asked(), []);
});
