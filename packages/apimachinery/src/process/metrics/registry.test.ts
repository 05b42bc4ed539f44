import assert from "node:assert/strict";
import { test } from "node:test";
import { goFloat } from "./go-float.ts";
import { exponentialBuckets, newMetricsRegistry } from "./registry.ts";

const linesOf = async (registry: { render(): Promise<string> }, name: string): Promise<string[]> =>
  (await registry.render()).split("\n").filter((line) => line.includes(name));

test("renders counters with their labels and help", async () => {
  const registry = newMetricsRegistry();
  const requests = registry.counter({
    name: "apiserver_request_total",
    help: "Requests.",
    labels: ["verb", "code"],
    stability: "STABLE",
  });
  const gets = requests.labels("GET", "200");
  gets.inc();
  gets.inc(2);
  requests.labels("POST", '4"09').inc();
  assert.equal(requests.labels("GET", "200"), gets);
  assert.deepEqual(await linesOf(registry, "apiserver_request_total"), [
    "# HELP apiserver_request_total [STABLE] Requests.",
    "# TYPE apiserver_request_total counter",
    'apiserver_request_total{verb="GET",code="200"} 3',
    'apiserver_request_total{verb="POST",code="4\\"09"} 1',
  ]);
});

test("renders histograms with cumulative buckets and Go's numbers", async () => {
  const registry = newMetricsRegistry();
  const sizes = registry.histogram({ name: "sizes", help: "h", buckets: exponentialBuckets(1000, 1000, 2) });
  for (const value of [10, 1000, 1001, 5e6]) sizes.observe(value);
  assert.deepEqual((await linesOf(registry, "sizes")).slice(2), [
    'sizes_bucket{le="1000"} 2',
    'sizes_bucket{le="1e+06"} 3',
    'sizes_bucket{le="+Inf"} 4',
    "sizes_sum 5002011",
    "sizes_count 4",
  ]);
});

test("evaluates a gauge's function at each scrape", async () => {
  const registry = newMetricsRegistry();
  let waiting = 4;
  registry.gauge({ name: "depth", help: "h", labels: ["name"], collect: (gauge) => gauge.labels("q").set(waiting) });
  assert.deepEqual((await linesOf(registry, "depth")).at(-1), 'depth{name="q"} 4');
  waiting = 5;
  assert.deepEqual((await linesOf(registry, "depth")).at(-1), 'depth{name="q"} 5');
});

test("hides disabled metrics and replaces label values that are not allowed", async () => {
  const registry = newMetricsRegistry({ disabled: ["secret"], allowLabels: { "shown,verb": ["GET"] } });
  registry.counter({ name: "secret", help: "h" }).inc();
  const shown = registry.counter({ name: "shown", help: "h", labels: ["verb"] });
  shown.labels("GET").inc();
  shown.labels("x").inc();
  shown.labels("y").inc();
  assert.deepEqual(await linesOf(registry, "secret"), []);
  assert.deepEqual((await linesOf(registry, "shown")).slice(2), ['shown{verb="GET"} 1', 'shown{verb="unexpected"} 2']);
});

for (const { deprecatedSince, showHidden, want } of [
  { deprecatedSince: "1.22.0", showHidden: false, want: [] },
  {
    deprecatedSince: "1.22.0",
    showHidden: true,
    want: ["# HELP old [ALPHA] (Deprecated since 1.22.0) h", "# TYPE old counter", "old 1"],
  },
  {
    deprecatedSince: "1.23.0",
    showHidden: false,
    want: ["# HELP old [ALPHA] (Deprecated since 1.23.0) h", "# TYPE old counter", "old 1"],
  },
]) {
  test(`a metric deprecated since ${deprecatedSince} is ${want.length === 0 ? "hidden" : "shown"} ${showHidden ? "on demand" : "by default"}`, async () => {
    const registry = newMetricsRegistry({ showHidden });
    registry.counter({ name: "old", help: "h", deprecatedSince }).inc();
    assert.deepEqual(await linesOf(registry, "old"), want);
  });
}

test("gives the same metric again and refuses another of its name", () => {
  const registry = newMetricsRegistry();
  registry.counter({ name: "a", help: "h" }).inc();
  assert.equal(registry.counter({ name: "a", help: "h" }).value, 1);
  assert.throws(() => registry.gauge({ name: "a", help: "h" }), /registered already/);
});

test("a reset sets counters and histograms to zero, shown or not, and leaves gauges; their children stay in use", async () => {
  const registry = newMetricsRegistry({ disabled: ["hidden"] });
  const [hidden, gauge] = [registry.counter({ name: "hidden", help: "h" }), registry.gauge({ name: "level", help: "h" })];
  const sizes = registry.histogram({ name: "sizes", help: "h", labels: ["verb"], buckets: [1, 10] });
  const gets = sizes.labels("GET");
  hidden.inc();
  gauge.set(5);
  gets.observe(2, 3);
  assert.deepEqual([gets.count, gets.sum], [3, 6]);
  registry.reset();
  assert.deepEqual([hidden.value, gauge.value, gets.count, gets.sum], [0, 5, 0, 0]);
  gets.observe(0.5);
  assert.deepEqual((await linesOf(registry, "sizes")).slice(2), [
    'sizes_bucket{verb="GET",le="1"} 1',
    'sizes_bucket{verb="GET",le="10"} 1',
    'sizes_bucket{verb="GET",le="+Inf"} 1',
    'sizes_sum{verb="GET"} 0.5',
    'sizes_count{verb="GET"} 1',
  ]);
});

test("children are removed by all of their labels; a metric without labels has its child again after all were removed", async () => {
  const registry = newMetricsRegistry();
  const requests = registry.counter({ name: "requests", help: "h", labels: ["verb", "code"] });
  for (const code of ["200", "404"]) requests.labels("GET", code).inc();
  requests.remove("GET", "404");
  assert.deepEqual((await linesOf(registry, "requests")).slice(2), ['requests{verb="GET",code="200"} 1']);
  requests.reset();
  assert.deepEqual((await linesOf(registry, "requests")).slice(2), []);
  const plain = registry.gauge({ name: "plain", help: "of two\nlines" });
  plain.set(3);
  plain.reset();
  assert.deepEqual(await linesOf(registry, "plain"), ["# HELP plain [ALPHA] of two\\nlines", "# TYPE plain gauge", "plain 0"]);
  for (const values of [[], ["GET"], ["GET", "200", "x"]])
    assert.throws(() => requests.labels(...values), /^Error: metric requests has the labels verb,code, got \d values$/);
});

test("a page of many children comes in chunks, which together are the page", async () => {
  const registry = newMetricsRegistry();
  const many = registry.counter({ name: "many", help: "h", labels: ["name"] });
  for (let i = 0; i < 5_000; i++) many.labels(`child-${i}`).inc();
  const chunks: string[] = [];
  for await (const chunk of registry.chunks()) chunks.push(chunk);
  assert.ok(chunks.length >= 3 && chunks.every((chunk) => chunk.length < 40_000), String(chunks.map(({ length }) => length)));
  assert.equal(chunks.join("").match(/^many\{/gm)?.length, 5_000);
});

test("exports the version as kubernetes_build_info", async () => {
  const [, , line] = await linesOf(newMetricsRegistry({ processMetrics: true }), "kubernetes_build_info");
  assert.match(line as string, /git_version="v1.23.0".*major="1",minor="23".* 1$/);
  const [, , own] = await linesOf(newMetricsRegistry({ processMetrics: true }), "coxswain_build_info");
  assert.match(own as string, /^coxswain_build_info\{version="\d+\.\d+\.\d+",node_version="v26\..*"\} 1$/);
});

test("the version metric can be registered without the process's metrics", async () => {
  assert.match(await newMetricsRegistry({ buildInfo: true }).render(), /^kubernetes_build_info\{(?![\s\S]*^process_cpu)/m);
  assert.doesNotMatch(await newMetricsRegistry({ processMetrics: true, buildInfo: false }).render(), /build_info/);
  assert.doesNotMatch(await newMetricsRegistry().render(), /build_info/);
});

for (const [value, want] of [
  [0.005, "0.005"],
  [1, "1"],
  [100000, "100000"],
  [1e6, "1e+06"],
  [1234567, "1.234567e+06"],
  [1e-5, "1e-05"],
  [Number.POSITIVE_INFINITY, "+Inf"],
  [Number.NEGATIVE_INFINITY, "-Inf"],
  [Number.NaN, "NaN"],
] as const) {
  test(`writes ${value} as Go does`, () => assert.equal(goFloat(value), want));
}
