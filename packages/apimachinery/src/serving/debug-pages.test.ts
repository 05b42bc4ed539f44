import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger, newLogger } from "../process/logging/logger.ts";
import { cpuMsOf } from "../testing/cpu-time.ts";
import { waitFor } from "../testing/wait-for.ts";
import type { Exchange } from "./exchange.ts";
import { answerHealth, healthPage } from "./health.ts";
import { newDebugPages } from "./pprof.ts";
import { cpuProfile } from "./pprof-profile.ts";
import { selfSignedPair } from "./self-signed.ts";

interface Sent {
  status: number;
  body: Buffer;
}

function exchangeOf(url: string, method = "GET", body = ""): { exchange: Exchange; sent: Sent } {
  const sent: Sent = { status: 0, body: Buffer.alloc(0) };
  const exchange = {
    method,
    url,
    body: () => Promise.resolve(Buffer.from(body)),
    respond(status: number, _headers: object, bytes: Buffer | string = "") {
      Object.assign(sent, { status, body: Buffer.from(bytes) });
    },
  } as unknown as Exchange;
  return { exchange, sent };
}

const checks = [
  { name: "ping", run: () => {} },
  {
    name: "etcd",
    run: async () => {
      throw new Error("secret reason");
    },
  },
];
for (const { url, status, body } of [
  { url: "/readyz", status: 500, body: "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n" },
  { url: "/readyz?exclude=etcd", status: 200, body: "ok" },
  { url: "/readyz?exclude=etcd&verbose", status: 200, body: "[+]ping ok\n[+]etcd excluded: ok\nreadyz check passed\n" },
  {
    url: "/livez?exclude=etcd&exclude=x&verbose=1",
    status: 200,
    body: '[+]ping ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no matches for "x"\nlivez check passed\n',
  },
  { url: "/healthz/ping", status: 200, body: "ok" },
  { url: "/healthz/etcd", status: 500, body: "internal server error: secret reason\n" },
  { url: "/healthz/none", status: 404, body: "404 page not found\n" },
]) {
  test(`health: ${url}`, async () => {
    const { exchange, sent } = exchangeOf(url);
    const { page, check } = healthPage(url.split("?")[0] as string) as { page: string; check: string };
    await answerHealth(exchange, page, check, checks, discardLogger);
    assert.deepEqual([sent.status, String(sent.body)], [status, body]);
  });
}

test("an excluded check is not run, unknown exclusions are named in order, and warnings are shown with ?verbose only", async () => {
  const own = [
    { name: "never", run: () => assert.fail("run") },
    { name: "aging", run: () => {}, warning: async () => "is old" },
  ];
  const answerTo = async (url: string): Promise<string> => {
    const { exchange, sent } = exchangeOf(url);
    await answerHealth(exchange, "readyz", "", own, discardLogger);
    return `${sent.status} ${sent.body}`;
  };
  assert.equal(await answerTo("/readyz?exclude=never"), "200 ok");
  assert.equal(
    await answerTo("/readyz?exclude=z&exclude=never&exclude=a&verbose"),
    '200 [+]never excluded: ok\n[+]aging ok\nwarn: aging: is old\nwarn: some health checks cannot be excluded: no matches for "a","z"\nreadyz check passed\n',
  );
  const failing = [...own.slice(1), { name: "broken", run: () => Promise.reject(new Error("no")) }];
  const { exchange, sent } = exchangeOf("/readyz");
  await answerHealth(exchange, "readyz", "", failing, discardLogger);
  assert.equal(`${sent.status} ${sent.body}`, "500 [+]aging ok\n[-]broken failed: reason withheld\nreadyz check failed\n");
});

test("records a CPU profile that pprof reads, one at a time", async () => {
  const pages = newDebugPages({ log: newLogger() });
  const first = exchangeOf("/debug/pprof/profile?seconds=0.2");
  const second = exchangeOf("/debug/pprof/profile?seconds=0.2");
  const taking = pages.handle(first.exchange, "/debug/pprof/profile");
  await pages.handle(second.exchange, "/debug/pprof/profile");
  assert.deepEqual(
    [second.sent.status, String(second.sent.body)],
    [500, "Could not enable profiling: profiling already in use\n"],
  );
  let burntMs = 0;
  while (burntMs < 100) burntMs += cpuMsOf(burnSomeTime);
  await taking;
  assert.equal(first.sent.status, 200);
  const profile = Profile.decode(gunzipSync(first.sent.body));
  assert.deepEqual(
    profile.sampleType.map(({ type }) => profile.stringTable.strings[Number(type)]),
    ["samples", "cpu"],
  );
  assert.ok(profile.stringTable.strings.includes("burnSomeTime"));
  assert.ok(profile.sample.length > 0);
});

test("a CPU profile has the samples, the time and the callers of each function; time that runs backwards counts as none", () => {
  const node = (id: number, functionName: string, children: number[] = []) => ({
    ...{ id, children, hitCount: 0 },
    callFrame: { functionName, scriptId: "1", url: "file:///a.js", lineNumber: id, columnNumber: 0 },
  });
  const nodes = [node(1, "(root)", [2]), node(2, "outer", [3]), node(3, "inner")];
  const bytes = cpuProfile({ nodes, startTime: 0, endTime: 20, samples: [3, 2, 3, 3], timeDeltas: [5, 4, -3, 7] });
  const { sample, location, function: functions, stringTable, durationNanos } = Profile.decode(gunzipSync(bytes));
  const nameOf = (id: number | bigint): string | undefined => {
    const at = location.find((one) => one.id === id)?.line[0]?.functionId;
    return stringTable.strings[Number(functions.find((one) => one.id === at)?.name)];
  };
  const shown = sample.map(({ locationId, value }) => [locationId.map(nameOf).join("<"), ...value.map(Number)]);
  assert.deepEqual(shown, [
    ["inner<outer", 3, 12_000],
    ["outer", 1, 4_000],
  ]);
  assert.equal(Number(durationNanos), 20_000);
});

function burnSomeTime(): number {
  let sum = 0;
  for (let i = 0; i < 1e5; i++) sum += Math.sqrt(i);
  return sum;
}

test("takes a heap profile", async () => {
  const pages = newDebugPages({ log: newLogger() });
  const { exchange, sent } = exchangeOf("/debug/pprof/heap?seconds=0.05");
  await pages.handle(exchange, "/debug/pprof/heap");
  const profile = Profile.decode(gunzipSync(sent.body));
  assert.equal(profile.stringTable.strings[Number(profile.sampleType[1]?.type)], "inuse_space");
});

test("serves the other debug pages, and 404 for unknown ones", async (t) => {
  const active = setInterval(() => {}, 1_000_000); // something for the goroutine page to list
  t.after(() => clearInterval(active));
  const pages = newDebugPages({ log: newLogger() });
  for (const [path, status, body] of [
    ["/debug/pprof/", 200, /profile/],
    ["/debug/pprof", 302, /^<a href="\/debug\/pprof\/">Found<\/a>\.\n\n$/],
    ["/debug/flags/v", 406, /^unsupported http method\n$/],
    ["/debug/pprof/goroutine", 200, /\tTimeout/],
    ["/debug/pprof/none", 404, /Unknown profile/],
    ["/debug/pprof/profile?seconds=9999", 400, /seconds/],
  ] as const) {
    const { exchange, sent } = exchangeOf(path);
    await pages.handle(exchange, path.split("?")[0] as string);
    assert.equal(sent.status, status, path);
    assert.match(String(sent.body), body);
  }
  assert.deepEqual(
    ["/debug", "/debug/pprofx", "/debug/pprof/", "/debug/flags/v"].map((path) => pages.handles(path)),
    [false, false, true, true],
  );
});

test("changes the verbosity of the log", async () => {
  const log = newLogger({ write: () => {} });
  const pages = newDebugPages({ log });
  const { exchange, sent } = exchangeOf("/debug/flags/v", "PUT", "4");
  await pages.handle(exchange, "/debug/flags/v");
  assert.deepEqual([sent.status, String(sent.body)], [200, "successfully set klog.logging.verbosity to 4\n"]);
  assert.ok(log.enabled(4));
  const wrong = exchangeOf("/debug/flags/v", "PUT", "loud");
  await pages.handle(wrong.exchange, "/debug/flags/v");
  assert.equal(wrong.sent.status, 400);
});

test("creates a serving certificate once and reuses it", async (t) => {
  const certDir = mkdtempSync(join(tmpdir(), "cox-cert-"));
  t.after(() => rmSync(certDir, { recursive: true }));
  const options = { certDir: join(certDir, "deep"), pairName: "kube-x", host: "h", dnsNames: ["localhost"], ips: ["127.0.0.1"] };
  const made = await selfSignedPair(options);
  assert.ok("certFile" in made);
  assert.equal(statSync(made.keyFile).mode & 0o777, 0o600);
  const before = readFileSync(made.certFile, "utf8");
  await selfSignedPair(options);
  assert.equal(readFileSync(made.certFile, "utf8"), before);
  assert.ok("cert" in (await selfSignedPair({ ...options, certDir: "" })));
});

for (const { page, ms } of [
  { page: "profile", ms: 30_000 },
  { page: "heap", ms: 5_000 },
  { page: "allocs", ms: 5_000 },
  { page: "profile?seconds=300", ms: 300_000 },
  { page: "heap?seconds=1.5", ms: 1_500 },
]) {
  test(`/debug/pprof/${page} takes ${ms / 1000} s, and then leaves no session behind`, async (t) => {
    const disconnect = t.mock.method(Session.prototype, "disconnect");
    const clock = newFakeClock();
    const pages = newDebugPages({ log: newLogger(), clock });
    const { exchange, sent } = exchangeOf(`/debug/pprof/${page}`);
    const done = pages.handle(exchange, `/debug/pprof/${page.split("?")[0]}`);
    await waitFor(() => clock.waiting === 1 || sent.status !== 0, { what: "the profile to begin" });
    await clock.advance(ms - 1);
    assert.deepEqual([clock.waiting, sent.status, disconnect.mock.callCount()], [1, 0, 0]);
    await clock.advance(1);
    assert.equal(clock.waiting, 0);
    await done;
    assert.deepEqual([clock.waiting, sent.status, disconnect.mock.callCount()], [0, 200, 1]);
  });
}

for (const seconds of ["301", "300.1", "0", "-1", "x", ""]) {
  test(`/debug/pprof/profile?seconds=${seconds} is refused`, async () => {
    const { exchange, sent } = exchangeOf(`/debug/pprof/profile?seconds=${seconds}`);
    await newDebugPages({ log: newLogger() }).handle(exchange, "/debug/pprof/profile");
    assert.deepEqual([sent.status, String(sent.body)], [400, "seconds must be a number up to 300\n"]);
  });
}

for (const { verbosity, status, body } of [
  { verbosity: "0", status: 200, body: "successfully set klog.logging.verbosity to 0\n" },
  { verbosity: "100", status: 200, body: "successfully set klog.logging.verbosity to 100\n" },
  ...["1000", "", "-1", "1 "].map((verbosity) => ({
    ...{ verbosity, status: 400 },
    body: `failed set klog.logging.verbosity ${verbosity}: strconv.ParseInt: parsing "${verbosity}": invalid syntax\n`,
  })),
]) {
  test(`the verbosity "${verbosity}" is answered with ${status}`, async () => {
    const { exchange, sent } = exchangeOf("/debug/flags/v", "PUT", verbosity);
    await newDebugPages({ log: newLogger({ write: () => {} }) }).handle(exchange, "/debug/flags/v");
    assert.deepEqual([sent.status, String(sent.body)], [status, body]);
  });
}
