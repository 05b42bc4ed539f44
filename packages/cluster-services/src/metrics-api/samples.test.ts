import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSamples } from "./samples.ts";

test("reads nodes and containers, with times", () => {
  const { node, pods } = parseSamples(
    `# HELP container_cpu_usage_seconds_total [ALPHA] Cumulative cpu time
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="main",namespace="default",pod="web-1"} 4.710169 1633253812125
container_memory_working_set_bytes{container="main",namespace="default",pod="web-1"} 1.253376e+07 1633253812125
container_start_time_seconds{container="main",namespace="default",pod="web-1"} 1.633252712e+09
node_cpu_usage_seconds_total 357.35491 1633253809720
node_memory_working_set_bytes 1.616273408e+09 1633253809720
scrape_error 0
`,
    5,
  );
  assert.deepEqual(node, { at: 1633253809720, cpuSeconds: 357.35491, memoryBytes: 1_616_273_408, startedAt: undefined });
  assert.deepEqual(pods.get("default/web-1")?.get("main"), {
    at: 1633253812125,
    cpuSeconds: 4.710169,
    memoryBytes: 12_533_760,
    startedAt: 1633252712000,
  });
});

for (const { name, text } of [
  { name: "without memory", text: 'container_cpu_usage_seconds_total{container="a",namespace="n",pod="p"} 1 1' },
  {
    name: "whose memory is zero",
    text: 'container_cpu_usage_seconds_total{container="a",namespace="n",pod="p"} 1 1\ncontainer_memory_working_set_bytes{container="a",namespace="n",pod="p"} 0 1',
  },
  {
    name: "of which one container was not measured",
    text: `container_cpu_usage_seconds_total{container="a",namespace="n",pod="p"} 1 1
container_memory_working_set_bytes{container="a",namespace="n",pod="p"} 5 1
container_memory_working_set_bytes{container="b",namespace="n",pod="p"} 5 1`,
  },
  {
    name: "that is not named",
    text: [
      'container_cpu_usage_seconds_total{container="a",pod="p"} 1 1',
      'container_memory_working_set_bytes{container="a",pod="p"} 1 1',
      'container_cpu_usage_seconds_total{container="a",namespace="n"} 1 1',
      'container_cpu_usage_seconds_total{namespace="n",pod="p"} 1 1',
    ].join("\n"),
  },
  {
    name: "whose numbers are none",
    text: 'container_cpu_usage_seconds_total{container="a",namespace="n",pod="p"} NaN 1\ngarbage {',
  },
]) {
  test(`leaves out a pod ${name}`, () => {
    assert.deepEqual([...parseSamples(text, 1).pods.keys()], []);
  });
}

test("reads quoted label values, and uses the request's time for samples without a timestamp", () => {
  const labels = 'container="a\\"}",namespace="n",pod="p"';
  const { pods } = parseSamples(
    `container_cpu_usage_seconds_total{${labels}} 1\ncontainer_memory_working_set_bytes{${labels}} 2\n`,
    77,
  );
  assert.equal(pods.get("n/p")?.get('a"}')?.at, 77);
});

test("what was measured at another time than the CPU does not change the sample's time, and negative values are none", () => {
  const of = 'container="a",namespace="n",pod="p"';
  const { pods, node } = parseSamples(
    `container_cpu_usage_seconds_total{${of}} 1 5000\ncontainer_memory_working_set_bytes{${of}} 2 9000\nnode_cpu_usage_seconds_total -1 5\nnode_memory_working_set_bytes 1 5\n`,
    1,
  );
  assert.deepEqual([pods.get("n/p")?.get("a")?.at, node], [5_000, undefined]);
});

test("a container that has used no CPU time is measured all the same", () => {
  const of = 'container="a",namespace="n",pod="p"';
  const { pods } = parseSamples(
    `container_cpu_usage_seconds_total{${of}} 0 5000\ncontainer_memory_working_set_bytes{${of}} 2 5000\n`,
    1,
  );
  assert.equal(pods.get("n/p")?.get("a")?.cpuSeconds, 0);
});
